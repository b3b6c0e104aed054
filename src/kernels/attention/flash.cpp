// attention over a paged KV state, one pass with a running maximum (flash attention, Dao et al. 2022).
//
// A workgroup owns one token and some heads of one kv head; lanes are components of a head while products are summed, and keys while
// scores are weighed. Keys are taken in blocks at fixed absolute positions, so a row's numbers depend neither on the chunk it came
// in nor on its neighbours: a key that is not visible weighs exactly 0.
#include <algorithm>

#include "kernels/common/expr.h"
#include "kernels/common/rows.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;

constexpr float kNothing = -3.0e38f;  // below every score; finite, so that differences stay numbers
constexpr uint32_t kHeadsAtOnce = 3;  // of one kv head: their keys and values are loaded once

struct Shape4 {
  uint32_t lanes, q_parts, v_parts, heads;  // registers a lane of q and v; heads of a workgroup
};

Shape4 shape_of(const AttentionDesc& d, const Caps& caps) {
  Shape4 s{};
  s.lanes = std::min<uint32_t>({floor_power_of_two(std::max(d.head_size, d.value_size)), caps.max_lanes, 64});
  s.q_parts = (d.head_size + s.lanes - 1) / s.lanes;
  s.v_parts = (d.value_size + s.lanes - 1) / s.lanes;
  const uint32_t group = d.heads / d.kv_heads;
  s.heads = 1;
  for (uint32_t h = 2; h <= kHeadsAtOnce; ++h) {
    if (group % h == 0) s.heads = h;
  }
  return s;
}

class Flash {
 public:
  Flash(Launcher& l, const AttentionDesc& d, const Shape4& s) : l_(l), d_(d), s_(s), lanes_(static_cast<int>(s.lanes)) {
    const Problem& p = l.problem();
    const auto bound = [&](Role role) { return l_.operand(static_cast<uint16_t>(find_role(p, role))); };
    q_ = bound(Role::q), k_ = bound(Role::k), v_ = bound(Role::v), pages_ = bound(Role::pages);
    row_start_ = bound(Role::row_start), kv_length_ = bound(Role::kv_length), position_ = bound(Role::position);
    out_ = bound(Role::out);
    mask_at_ = find_role(p, Role::mask), sinks_at_ = find_role(p, Role::sinks);
    for (uint32_t h = 0; h < s_.heads; ++h) weights_.push_back(kir::shared("p" + std::to_string(h), kir::f32, s_.lanes));
  }

  void run() {
    const int per_kv = static_cast<int>(d_.heads / d_.kv_heads / s_.heads), all = static_cast<int>(d_.kv_heads) * per_kv;
    token_ = kir::group() / all;
    const V which = kir::group() % all;
    kv_head_ = which / per_kv;
    first_head_ = kv_head_ * (per_kv * static_cast<int>(s_.heads)) + which % per_kv * static_cast<int>(s_.heads);
    find_sequence();
    start();
    kir::If(sequence_ < sequences_, [&] { keys(); });
    finish();
  }

 private:
  V as_i32(const V& v) { return v.type() == kir::i32 ? v : kir::cast(kir::i32, v); }

  // Tokens of a sequence stand together: the sequence is the number of row starts behind the first that are not above the token.
  void find_sequence() {
    const Problem& p = l_.problem();
    sequences_ = l_.size(p.extent[1]);
    kir::Var s = kir::var(kir::u32, kir::constant(kir::u32, 0));
    kir::For(0, sequences_, [&](V i) { s.set(s + kir::select(as_i32(row_start_[i + 1]) <= kir::cast(kir::i32, token_), kir::constant(kir::u32, 1), kir::constant(kir::u32, 0))); });
    sequence_ = s;
  }

  void start() {
    for (uint32_t h = 0; h < s_.heads; ++h) {
      const bool sink = sinks_at_ >= 0;
      const V top = sink ? convert(l_.operand(static_cast<uint16_t>(sinks_at_))[first_head_ + static_cast<int>(h)], kir::f32) : V(kNothing);
      top_.push_back(kir::var(kir::f32, top));
      sum_.push_back(kir::var(kir::f32, sink ? V(1.f) : V(0.f)));
      for (uint32_t r = 0; r < s_.v_parts; ++r) acc_.push_back(kir::var(kir::f32, V(0.f)));
    }
  }

  V slot(const V& key) {
    const int page = static_cast<int>(d_.page);
    const Shape& pages = l_.problem().operands[static_cast<size_t>(find_role(l_.problem(), Role::pages))].type.shape;
    const V entry = kir::bitcast(kir::u32, as_i32(pages_[sequence_ * l_.size(pages[1]) + key / page]));
    return page == 1 ? entry : entry * page + key % page;
  }
  // Whether the page table and the state have a place for the key.
  V placed(const V& key) {
    const Problem& p = l_.problem();
    const Shape& pages = p.operands[static_cast<size_t>(find_role(p, Role::pages))].type.shape;
    return key / static_cast<int>(d_.page) < l_.size(pages[1]);
  }
  V in_state(const V& at) {
    const Problem& p = l_.problem();
    return at < l_.size(p.operands[static_cast<size_t>(find_role(p, Role::k))].type.shape[0]);
  }

  // Component of this lane in part r, and whether the head has it.
  V component(uint32_t r) { return kir::lane() + static_cast<int>(r) * lanes_; }
  V load_part(const kir::Buffer& b, const V& row, const V& head, uint32_t size, uint32_t r) {
    const V at = (row + head) * static_cast<int>(size) + component(r);
    const bool whole = (r + 1) * s_.lanes <= size;
    if (whole) return convert(b[at], kir::f32);
    const V clamped = (row + head) * static_cast<int>(size) + kir::min(component(r), kir::constant(kir::u32, size - 1));
    return kir::select(component(r) < static_cast<int>(size), convert(b[clamped], kir::f32), V(0.f));
  }

  void keys() {
    std::vector<V> q;  // scaled once
    for (uint32_t h = 0; h < s_.heads; ++h) {
      for (uint32_t r = 0; r < s_.q_parts; ++r) {
        q.push_back(load_part(q_, token_ * static_cast<int>(d_.heads), first_head_ + static_cast<int>(h), d_.head_size, r) * static_cast<float>(d_.scale));
      }
    }
    const V at = as_i32(position_[token_]);
    V count = kir::max(as_i32(kv_length_[sequence_]), kir::constant(kir::i32, 0));
    if (d_.causal) count = kir::min(count, kir::max(at + 1, kir::constant(kir::i32, 0)));
    const V end = kir::cast(kir::u32, count);
    V first = kir::constant(kir::u32, 0);
    if (d_.window > 0) {
      const V low = kir::max(at - static_cast<int>(d_.window) + 1, kir::constant(kir::i32, 0));
      first = kir::cast(kir::u32, kir::min(low, count)) / lanes_;
    }
    kir::For(first, (end + (lanes_ - 1)) / lanes_, [&](V block) {
      const V base = block * lanes_, here = kir::min(end - base, kir::constant(kir::u32, s_.lanes));
      block_of_keys(q, base, here, at);
    });
  }

  void block_of_keys(const std::vector<V>& q, const V& base, const V& here, const V& at) {
    std::vector<kir::Var> score;
    for (uint32_t h = 0; h < s_.heads; ++h) score.push_back(kir::var(kir::f32, V(kNothing)));
    kir::For(0, here, [&](V j) {
      const V key = base + j;
      kir::If(placed(key), [&] {
        const V row = slot(key);
        kir::If(in_state(row), [&] {
          std::vector<V> k;
          for (uint32_t r = 0; r < s_.q_parts; ++r) k.push_back(load_part(k_, row * static_cast<int>(d_.kv_heads), kv_head_, d_.head_size, r));
          for (uint32_t h = 0; h < s_.heads; ++h) {
            V product = q[h * s_.q_parts] * k[0];
            for (uint32_t r = 1; r < s_.q_parts; ++r) product = kir::fma(q[h * s_.q_parts + r], k[r], product);
            score[h].set(kir::select(kir::lane() == j, kir::wg_add(product), score[h]));
          }
        });
      });
    });
    const V key = base + kir::lane();
    V visible = kir::lane() < here;
    if (d_.window > 0) visible = visible && at - kir::cast(kir::i32, key) < static_cast<int>(d_.window);
    for (uint32_t h = 0; h < s_.heads; ++h) weigh(h, score[h], key, visible);
    kir::barrier();
    kir::For(0, here, [&](V j) {
      kir::If(placed(base + j), [&] {
        const V row = slot(base + j);
        kir::If(in_state(row), [&] {
          for (uint32_t r = 0; r < s_.v_parts; ++r) {
            const V v = load_part(v_, row * static_cast<int>(d_.kv_heads), kv_head_, d_.value_size, r);
            for (uint32_t h = 0; h < s_.heads; ++h) {
              kir::Var& acc = acc_[h * s_.v_parts + r];
              acc.set(kir::fma(weights_[h][j], v, acc));
            }
          }
        });
      });
    });
    kir::barrier();
  }

  // Scores of a block become weights against the running maximum; what was summed before is scaled to it.
  void weigh(uint32_t h, const V& raw, const V& key, const V& visible) {
    V score = raw;
    if (d_.soft_cap > 0) score = kir::tanh(score * static_cast<float>(1 / d_.soft_cap)) * static_cast<float>(d_.soft_cap);
    score = kir::select(raw == kNothing, raw, score);
    if (mask_at_ >= 0) score = masked(h, score, key);
    score = kir::select(visible, score, V(kNothing));
    const V before = top_[h];
    const V top = kir::max(before, kir::wg_max(score));
    const V weight = kir::select(score == kNothing, V(0.f), kir::exp(score - top));
    const V shrink = kir::select(before == kNothing, V(0.f), kir::exp(before - top));
    sum_[h].set(kir::fma(sum_[h], shrink, kir::wg_add(weight)));
    for (uint32_t r = 0; r < s_.v_parts; ++r) acc_[h * s_.v_parts + r].set(acc_[h * s_.v_parts + r] * shrink);
    top_[h].set(top);
    weights_[h].store(kir::lane(), weight);
  }

  V masked(uint32_t h, const V& score, const V& key) {
    const Operand& o = l_.problem().operands[static_cast<size_t>(mask_at_)];
    const kir::Buffer mask = l_.operand(static_cast<uint16_t>(mask_at_));
    const V columns = l_.size(o.type.shape.back());
    const V row = o.type.shape.size() == 3 ? token_ * static_cast<int>(d_.heads) + first_head_ + static_cast<int>(h) : token_;
    const V inside = key < columns;
    kir::Var out = kir::var(kir::f32, V(kNothing));
    kir::If(inside, [&] {
      const V m = mask[row * columns + key];
      if (o.type.dtype == DType::boolean) {
        out.set(kir::select(m.type() == kir::b1 ? m : m != 0, score, V(kNothing)));
      } else {
        const V bias = convert(m, kir::f32);
        out.set(kir::select(bias < kNothing || score == kNothing, V(kNothing), score + bias));
      }
    });
    return out;
  }

  void finish() {
    for (uint32_t h = 0; h < s_.heads; ++h) {
      const V all = sum_[h];
      const V inverse = kir::select(all == 0.f, V(0.f), 1.f / all);
      for (uint32_t r = 0; r < s_.v_parts; ++r) {
        const V y = acc_[h * s_.v_parts + r] * inverse;
        const V at = (token_ * static_cast<int>(d_.heads) + first_head_ + static_cast<int>(h)) * static_cast<int>(d_.value_size) + component(r);
        const kir::Type type = kir::type_info(out_.type()).loaded;
        if ((r + 1) * s_.lanes <= d_.value_size) {
          out_.store(at, convert(y, type));
        } else {
          kir::If(component(r) < static_cast<int>(d_.value_size), [&] { out_.store(at, convert(y, type)); });
        }
      }
    }
  }

  Launcher& l_;
  const AttentionDesc& d_;
  const Shape4& s_;
  int lanes_;
  kir::Buffer q_, k_, v_, pages_, row_start_, kv_length_, position_, out_;
  int mask_at_ = -1, sinks_at_ = -1;
  V token_, kv_head_, first_head_, sequence_, sequences_;
  std::vector<kir::Var> top_, sum_, acc_;
  std::vector<kir::Shared> weights_;
};

Status build_flash(const Problem& problem, const Bid&, BuildCtx& ctx) {
  const auto& d = std::get<AttentionDesc>(problem.desc);
  const Shape4 s = shape_of(d, ctx.asked.caps);
  Launcher l(ctx, problem, "attention", s.lanes);
  l.b().node_budget(1200);
  Flash(l, d, s).run();
  return l.launch(ctx.asked.dims.mul(problem.extent[0], static_cast<int64_t>(d.heads / s.heads)));
}

OrRefuse<std::vector<Bid>> bid_flash(const Problem& problem, const Asked& asked) {
  const auto& d = std::get<AttentionDesc>(problem.desc);
  if (!d.paged) return refuse("reads paged keys only; dense attention decomposes");
  if (d.head_size == 0 || d.value_size == 0 || d.kv_heads == 0 || d.heads % d.kv_heads != 0) return refuse("head sizes are not constant");
  for (const Role role : {Role::q, Role::k, Role::v, Role::row_start, Role::kv_length, Role::pages, Role::position, Role::out}) {
    if (find_role(problem, role) < 0) return refuse("an operand is missing");
  }
  for (const Role role : {Role::q, Role::k, Role::v, Role::out}) {
    const DType t = problem.operands[static_cast<size_t>(find_role(problem, role))].type.dtype;
    if (t != DType::f32 && t != DType::f16 && t != DType::bf16) return refuse("attention is over f32, f16 or bf16, not " + std::string(dtype_name(t)));
  }
  const DType out = problem.operands[static_cast<size_t>(find_role(problem, Role::out))].type.dtype;
  if (out != DType::f32 && !asked.caps.f16_storage) return refuse("the device stores no halves");
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(problem));
  TERN_ACCEPT(const Unit fit, check_bindings(problem, layouts, asked));
  (void)fit;
  Bid bid;
  bid.layouts = std::move(layouts);
  const Shape4 s = shape_of(d, asked.caps);
  bid.numerics = numerics_tag("attention 1", {static_cast<int64_t>(s.lanes), d.head_size}, asked.caps);
  const double tokens = largest(asked, problem, problem.extent[0]);
  for (size_t i = 0; i < bid.layouts.size(); ++i) bid.bytes += bytes_of(problem.operands[i], bid.layouts[i], problem, asked);
  const auto& k = problem.operands[static_cast<size_t>(find_role(problem, Role::k))];
  bid.flop = 2.0 * tokens * d.heads * (d.head_size + d.value_size) * largest(asked, problem, k.type.shape[0]);
  bid.seconds = asked.caps.launch_s + std::max(bid.bytes / asked.caps.read_bytes_per_s, bid.flop / asked.caps.flop_per_s);
  bid.variant = "flash " + std::to_string(s.lanes) + " keys a block";
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kFlashKernel;
const Candidate kFlashKernel = {"flash", Family::attention, kernels::bid_flash, kernels::build_flash};

}  // namespace tern
