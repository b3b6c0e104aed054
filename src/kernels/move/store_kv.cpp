// store into a paged KV state (tern/state/kv.h): floats as words of neighbouring components, q8 and q4 quantised here.
#include <algorithm>

#include "kernels/common/blocks.h"
#include "kernels/common/expr.h"
#include "kernels/common/rows.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;

class Store {
 public:
  Store(Launcher& l, const StoreRoles& r, const StoreDesc& d)
      : l_(l),
        r_(r),
        d_(d),
        state_(l.operand(r.state)),
        token_(kir::group()),
        heads_(l.argument(static_cast<int64_t>(d.heads))),
        size_(static_cast<int>(d.size)),
        page_(static_cast<int>(d.page)) {
    const V slot = load_index(l, r.index, token_);
    at_page_ = slot / page_, at_ = slot % page_;
  }

  void run() {
    const V pages = l_.argument(l_.problem().operands[r_.state].type.shape[0]);
    kir::If(at_page_ < pages, [&] { is_quantised(d_.kv) ? quantised() : floats(); });
  }

 private:
  V value(const V& column) { return stored_value(l_, r_, token_, column, kir::f32); }

  // A lane stores the components that fill a word.
  void floats() {
    const int together = 32 / kv_bits(d_.kv), lanes = static_cast<int>(l_.b().lanes());
    const int per_head = size_ / together;
    const V words = heads_ * per_head;
    kir::For(0, (words + (lanes - 1)) / lanes, [&](V i) {
      const V word = i * lanes + kir::lane();
      kir::If(word < words, [&] {
        std::vector<V> v;
        for (int k = 0; k < together; ++k) v.push_back(value(word * together + k));
        const V head = (at_page_ * heads_ + word / per_head) * (per_head * page_), c = word % per_head;
        const V to = head + (d_.keys ? c * page_ + at_ : at_ * per_head + c);
        if (together == 1)
          state_.store(to, v[0]);
        else
          state_.as(state_.type(), together).store(to, v);
      });
    });
  }

  // 32 lanes, one a component of a block.
  void quantised() {
    staging_ = kir::shared("codes", kir::u32, kCodes);
    const int blocks = size_ / kCodes, words = static_cast<int>(kv_words(d_.kv, size_));
    kir::For(0, heads_, [&](V h) {
      const V head = (at_page_ * heads_ + h) * (words * page_);
      kir::For(0, static_cast<uint32_t>(kv_scale_words(size_)), [&](V s) {
        const kir::Var scales = kir::var(kir::u32, kir::constant(kir::u32, 0));
        each_half(blocks, s,
                  [&](const V& b, int which) { scales.set(scales.get() | block(head, h, b) << (16 * which)); });
        const V to = head + (static_cast<int>(kv_code_words(d_.kv, size_)) + s) * page_ + at_;
        kir::If(kir::lane() == 0, [&] { state_.store(to, scales.get()); });
      });
    });
  }

  // Stores a block's codes; the bits of its scale.
  V block(const V& head, const V& h, const V& b) {
    const bool eight = d_.kv == KvKind::q8;
    const V x = value(h * size_ + b * kCodes + kir::lane());
    V scale;
    if (eight) {
      scale = kir::wg_max(kir::abs(x)) * (1.f / 127.f);
    } else {
      const V most = kir::wg_max(x), least = kir::wg_min(x);
      scale = kir::select(most >= -least, most, least) * -0.125f;
    }
    const V bits = kir::f32_to_half(kir::clamp(scale, -65504.f, 65504.f));
    const V rounded = kir::half_to_f32(bits), inverse = kir::select(rounded == 0.f, V(0.f), 1.f / rounded);
    const V low = eight ? V(-127.f) : V(-8.f), high = eight ? V(127.f) : V(7.f);
    const V code = kir::cast(kir::i32, kir::clamp(kir::round(x * inverse), low, high));
    const int zero = !eight ? 8 : d_.keys ? 128 : 0;
    staging_.store(kir::lane(), kir::bitcast(kir::u32, code + zero) & 0xff);
    kir::barrier();
    const int words = eight ? 8 : 4, row = static_cast<int>(kv_code_words(d_.kv, size_));
    kir::If(kir::lane() < words, [&] {
      V word = kir::constant(kir::u32, 0);
      for (int i = 0; i < 4; ++i) {
        V byte = staging_[kir::lane() * 4 + i];
        if (!eight) byte = byte | staging_[kir::lane() * 4 + (16 + i)] << 4;
        word = word | byte << (8 * i);
      }
      const V w = b * words + kir::lane();
      state_.store(head + (d_.keys ? w * page_ + at_ : at_ * row + w), word);
    });
    kir::barrier();
    return bits;
  }

  Launcher& l_;
  const StoreRoles& r_;
  const StoreDesc& d_;
  kir::Buffer state_;
  kir::Shared staging_;
  V token_, heads_;
  int size_, page_;
  V at_page_, at_;
};

Status build_store_kv(const Problem& problem, const Bid&, BuildCtx& ctx) {
  const auto r = store_roles(problem);
  if (!r) return make_error(Code::internal, r.why());
  const auto& d = std::get<StoreDesc>(problem.desc);
  const int64_t words = int64_t{d.heads} * d.size * kv_bits(d.kv) / 32;
  Launcher l(ctx, problem, "store_kv", is_quantised(d.kv) ? kCodes : stream_lanes(ctx.asked.caps, words));
  Store(l, *r, d).run();
  return l.launch(problem.extent[0]);
}

OrRefuse<std::vector<Bid>> bid_store_kv(const Problem& problem, const Asked& asked) {
  const auto& d = std::get<StoreDesc>(problem.desc);
  if (d.page == 0) return refuse("stores pages of keys and values, not plain rows");
  TERN_ACCEPT(const StoreRoles r, store_roles(problem));
  TERN_ACCEPT(Unit fit, check_index(problem.operands[r.index]));
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(problem));
  TERN_ACCEPT(fit, check_bindings(problem, layouts, asked));
  TERN_ACCEPT(fit, check_expr(problem.prologue, asked.caps));
  if (d.size * kv_bits(d.kv) % 32 != 0) return refuse("a head is no whole words");
  if (is_quantised(d.kv) && (d.size % kCodes != 0 || asked.caps.max_lanes < kCodes))
    return refuse("quantises 32 components at once");
  Bid bid;
  bid.layouts = std::move(layouts);
  bid.numerics = numerics_tag("store_kv 1", {}, asked.caps);
  const double elements = largest(asked, problem, problem.extent[0]) * largest(asked, problem, problem.extent[1]);
  bid.bytes = elements * (4 + kv_bits(d.kv) / 8.0);
  bid.seconds = asked.caps.launch_s + bid.bytes / asked.caps.read_bytes_per_s;
  bid.variant = std::string(kv_kind_name(d.kv));
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kStoreKvKernel;
const Candidate kStoreKvKernel = {"store_kv", Family::store, kernels::bid_store_kv, kernels::build_store_kv};

}  // namespace tern
