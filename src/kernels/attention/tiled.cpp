// attention over a paged KV state, with a running maximum (flash attention, Dao et al. 2022), for tiles of queries that
// share keys.
//
// A workgroup owns up to R rows: Q consecutive tokens times the G query heads of one kv head. Keys are taken in blocks
// of 64 at fixed absolute positions. Lanes are keys while products are summed (each key is loaded once for all rows)
// and components while values are. What a row's numbers are made of depends on its own keys alone: a key that it does
// not see weighs 0 and leaves sums as they are, so neither the tile, the chunk a token came in nor its neighbours
// change a bit.
#include <algorithm>

#include "kernels/common/expr.h"

namespace tern {

namespace kernels {
namespace {

using kir::Shared;
using kir::V;
using kir::Var;

constexpr float kNothing = -3.0e38f;          // below every score; finite, so that differences stay numbers
constexpr uint32_t kKeys = 64;                // of a block
constexpr uint32_t kFixed = 8 * kKeys + 512;  // bytes of workgroup memory beside the rows'
constexpr uint32_t kRows = 12;                // accumulators that stay in registers

struct Shape4 {
  uint32_t lanes = 1, heads = 1, tokens = 1;  // L; query heads and tokens of a workgroup
  uint32_t rows() const { return heads * tokens; }
};

Shape4 shape_of(const AttentionDesc& d, const Caps& caps, int64_t most_tokens) {
  Shape4 s;
  // Two registers a value where there are 32 of them: with one, few rows leave too few sums in flight. And where they
  // are of four lanes: the weights of a block of keys, written out, would be too long a kernel.
  const uint32_t vectors = caps.lanes >= 16 || caps.lanes <= 4 ? 2 : 1;
  s.lanes = std::min<uint32_t>(floor_power_of_two(std::min(vectors * caps.lanes, caps.max_lanes)), kKeys);
  const uint32_t group = d.heads / d.kv_heads;
  for (uint32_t h = 1; h <= std::min(group, kRows); ++h) {
    if (group % h == 0) s.heads = h;
  }
  // Queries, sums and scores of the rows must fit the workgroup's memory.
  const uint64_t row_bytes = 4ull * (d.head_size + d.value_size + s.lanes + kKeys + 3);
  const auto fit = static_cast<uint32_t>(std::max<uint64_t>(1, (caps.workgroup_bytes - kFixed) / row_bytes));
  while (s.heads > 1 && (s.heads > fit || group % s.heads != 0)) --s.heads;
  s.tokens = std::clamp<uint32_t>(std::min(fit, kRows) / s.heads, 1, 8);
  s.tokens = static_cast<uint32_t>(std::min<int64_t>(s.tokens, std::max<int64_t>(most_tokens, 1)));
  return s;
}

V zero() { return kir::constant(kir::u32, 0); }
V as_i32(const V& v) { return v.type() == kir::i32 ? v : kir::cast(kir::i32, v); }

class Attention {
 public:
  Attention(Launcher& l, const AttentionDesc& d, const Shape4& s)
      : l_(l), p_(l.problem()), d_(d), s_(s), L_(static_cast<int>(s.lanes)) {
    q_ = bound(Role::q), k_ = bound(Role::k), v_ = bound(Role::v), pages_ = bound(Role::pages),
    position_ = bound(Role::position);
    row_start_ = bound(Role::row_start), kv_length_ = bound(Role::kv_length), out_ = bound(Role::out);
    parts_ = (static_cast<int>(d.value_size) + L_ - 1) / L_;
    queries_ = kir::shared("q", kir::f32, s.rows() * d.head_size);
    weights_ = kir::shared("p", kir::f32, s.rows() * kKeys);
    sums_ = kir::shared("o", kir::f32, s.rows() * static_cast<uint32_t>(parts_) * s.lanes);
    rows_ = kir::shared("rows", kir::u32, kKeys);
    seen_ = kir::shared("seen", kir::u32, kKeys);
    state_ = kir::shared("state", kir::f32, 3 * s.rows());
    tokens_of_ = kir::shared("tokens", kir::i32, 2 * s.tokens);
  }

  void run() {
    heads_ = l_.argument(static_cast<int64_t>(d_.heads)), kv_heads_ = l_.argument(static_cast<int64_t>(d_.kv_heads));
    const int64_t count = d_.heads / s_.heads;  // blocks of query heads
    const V blocks = count == 1 ? kir::constant(kir::u32, 1) : l_.argument(count);
    const V which = kir::group() % blocks;
    const int per_kv = static_cast<int>(d_.heads / d_.kv_heads / s_.heads);
    first_token_ = kir::group() / blocks * static_cast<int>(s_.tokens);
    kv_head_ = which / per_kv;
    first_head_ = which * static_cast<int>(s_.heads);
    tokens_ = l_.size(p_.extent[0]);
    sequences_ = l_.size(p_.extent[1]);
    for (uint32_t t = 0; t < s_.tokens; ++t) start_token(t);
    each_row([&](V r) { start_row(r); });
    kir::barrier();
    // Tokens of a sequence stand together, so a tile meets few sequences: mostly one.
    kir::For(sequence_.front(), kir::min(sequence_.back() + 1, sequences_), [&](V s) { sequence(s); });
    finish();
  }

 private:
  kir::Buffer bound(Role role) { return l_.operand(static_cast<uint16_t>(find_role(p_, role))); }
  const Operand& operand(Role role) { return p_.operands[static_cast<size_t>(find_role(p_, role))]; }
  V token(uint32_t t) { return first_token_ + static_cast<int>(t); }
  V clamped(uint32_t t) { return t == 0 ? first_token_ : kir::min(token(t), tokens_ - 1); }
  void each_row(const std::function<void(V)>& f) { kir::For(0, s_.rows(), f); }
  V token_of(V row) { return kir::min(first_token_ + row / static_cast<int>(s_.heads), tokens_ - 1); }
  V head_of(V row) { return first_head_ + row % static_cast<int>(s_.heads); }
  V q_row(V row) { return token_of(row) * heads_ + head_of(row); }
  // Running maximum, sum of weights, and what the last block scaled earlier sums by.
  V top(V row) { return state_[row * 3]; }
  V sum(V row) { return state_[row * 3 + 1]; }
  V shrink(V row) { return state_[row * 3 + 2]; }

  void start_token(uint32_t t) {
    const V mine = kir::cast(kir::i32, clamped(t));
    const Var before = kir::var(kir::u32, zero());  // row starts behind the first that are not above the token
    kir::For(0, sequences_,
             [&](V i) { before.set(before.get() + kir::cast(kir::u32, as_i32(row_start_[i + 1]) <= mine)); });
    sequence_.push_back(before.get());
    at_.push_back(as_i32(position_[clamped(t)]));
    kir::If(kir::lane() == 0, [&] {
      tokens_of_.store(static_cast<int>(2 * t), kir::bitcast(kir::i32, sequence_.back()));
      tokens_of_.store(static_cast<int>(2 * t + 1), at_.back());
    });
  }

  void start_row(V r) {
    const int size = static_cast<int>(d_.head_size);
    const V from = q_row(r) * size, to = r * size;
    for_lanes(d_.head_size,
              [&](V c) { queries_.store(to + c, convert(q_[from + c], kir::f32) * static_cast<float>(d_.scale)); });
    kir::For(0, static_cast<uint32_t>(parts_), [&](V part) { sums_.store(sum_at(r, part), V(0.f)); });
    // The last block computes no scores behind its end; what stands there is never seen, but it is read.
    kir::For(0, kKeys / s_.lanes,
             [&](V sub) { weights_.store(r * static_cast<int>(kKeys) + (sub * L_ + kir::lane()), V(0.f)); });
    const int sinks = find_role(p_, Role::sinks);
    const V first = sinks < 0 ? kir::constant(kir::f32, static_cast<double>(kNothing))
                              : convert(l_.operand(static_cast<uint16_t>(sinks))[head_of(r)], kir::f32);
    kir::If(kir::lane() == 0, [&] {
      state_.store(r * 3, first);
      state_.store(r * 3 + 1, V(sinks < 0 ? 0.f : 1.f));
    });
  }

  void for_lanes(uint32_t count, const std::function<void(V)>& f) {
    const int n = static_cast<int>(count);
    kir::For(0, static_cast<uint32_t>((n + L_ - 1) / L_), [&](V i) {
      const V c = i * L_ + kir::lane();
      if (n % L_ == 0)
        f(c);
      else
        kir::If(c < n, [&] { f(c); });
    });
  }

  // The keys that some row of the tile may see, in whole blocks.
  void sequence(V s) {
    const V keys = kir::max(as_i32(kv_length_[s]), 0);
    V end = kir::constant(kir::i32, 0), first = keys;
    for (uint32_t t = 0; t < s_.tokens; ++t) {
      const V mine = sequence_[t] == s && row_start_first(s) <= kir::cast(kir::i32, clamped(t));
      const V last = d_.causal ? kir::min(keys, kir::max(at_[t] + 1, 0)) : keys;
      end = kir::max(end, kir::select(mine, last, 0));
      const V low = d_.window > 0 ? kir::max(at_[t] - static_cast<int>(d_.window) + 1, 0) : kir::constant(kir::i32, 0);
      first = kir::min(first, kir::select(mine, low, keys));
    }
    end = kir::max(end, 0);
    const int size = static_cast<int>(kKeys);
    kir::For(kir::cast(kir::u32, first) / size, (kir::cast(kir::u32, end) + (size - 1)) / size, [&](V block) {
      const V here = kir::min(kir::cast(kir::u32, end) - block * size, kir::constant(kir::u32, kKeys));
      place(s, block * size, kir::cast(kir::u32, keys));
      kir::barrier();
      scores(here);
      kir::barrier();
      each_row([&](V r) { weigh(r, s, block * size); });
      kir::barrier();
      values(here);
      kir::barrier();
    });
  }
  V row_start_first(V s) { return as_i32(row_start_[s]); }

  // Where the block's keys lie (rows of k and v); keys that lie nowhere take the first place and are not seen.
  void place(V s, V base, V keys) {
    const int page = static_cast<int>(d_.page);
    const V per_sequence = l_.argument(operand(Role::pages).type.shape[1]),
            slots = l_.argument(operand(Role::k).type.shape[0]);
    kir::For(0, kKeys / s_.lanes, [&](V sub) {
      const V at = sub * L_ + kir::lane(), key = base + at;
      const V inside = key < keys && key / page < per_sequence;
      const V entry = as_i32(pages_[s * per_sequence + kir::select(inside, key / page, zero())]);
      const V slot = page == 1 ? kir::bitcast(kir::u32, entry) : kir::bitcast(kir::u32, entry) * page + key % page;
      const V good = inside && 0 <= entry && slot < slots;
      rows_.store(at, kir::select(good, slot, zero()) * kv_heads_ + kv_head_);
      seen_.store(at, kir::cast(kir::u32, good));
    });
  }

  // Components of keys as one load brings them: four words where a head is whole loads, else one component.
  int step() const {
    const int most = k_.type() == kir::f32 ? 4 : 8;
    return static_cast<int>(d_.head_size) % most == 0 ? most : 1;
  }
  std::vector<V> components(V at) {
    if (step() == 1) return {convert(k_[at], kir::f32)};
    const kir::Parts words = (step() == 4 ? k_.as(kir::f32, 4) : k_.as(kir::u32, 4)).load(at);
    std::vector<V> out;
    for (int i = 0; i < 4; ++i) {
      if (step() == 4) {
        out.push_back(words[i]);
        continue;
      }
      for (const V& bits : {words[i], words[i] >> 16})
        out.push_back(operand(Role::k).type.dtype == DType::bf16 ? kir::bf16_to_f32(bits) : kir::half_to_f32(bits));
    }
    return out;
  }

  // Lanes are keys: sums over the components, for all rows at once.
  void scores(V here) {
    const int size = static_cast<int>(d_.head_size), step = this->step();
    kir::For(0, (here + (L_ - 1)) / L_, [&](V sub) {
      const V key = sub * L_ + kir::lane();
      const V row = rows_[key];
      std::vector<Var> sum;
      for (uint32_t r = 0; r < s_.rows(); ++r) sum.push_back(kir::var(0.f));
      kir::For(0, static_cast<uint32_t>(size / step), [&](V c) {
        const std::vector<V> k = components(row * (size / step) + c);
        for (uint32_t r = 0; r < s_.rows(); ++r) {
          V mine = sum[r].get();
          for (int i = 0; i < step; ++i)
            mine = kir::fma(k[static_cast<size_t>(i)], queries_[c * step + (static_cast<int>(r) * size + i)], mine);
          sum[r].set(mine);
        }
      });
      for (uint32_t r = 0; r < s_.rows(); ++r) weights_.store(key + static_cast<int>(r * kKeys), sum[r].get());
    });
  }

  // Scores of a row become weights against its running maximum; what was summed before is scaled to it.
  void weigh(V r, V s, V base) {
    const V t = r / static_cast<int>(s_.heads), place = tokens_of_[t * 2 + 1];
    const V mine =
        kir::bitcast(kir::u32, tokens_of_[t * 2]) == s && row_start_first(s) <= kir::cast(kir::i32, token_of(r));
    std::vector<V> score;
    for (int sub = 0; sub < static_cast<int>(kKeys); sub += L_) {
      const V at = kir::lane() + sub, key = base + at;
      V x = weights_[r * static_cast<int>(kKeys) + at];
      if (d_.soft_cap > 0) x = kir::tanh(x * static_cast<float>(1 / d_.soft_cap)) * static_cast<float>(d_.soft_cap);
      V visible = seen_[at] != 0 && mine;
      if (d_.causal) visible = visible && kir::cast(kir::i32, key) <= place;
      if (d_.window > 0) visible = visible && place - kir::cast(kir::i32, key) < static_cast<int>(d_.window);
      if (find_role(p_, Role::mask) >= 0) x = masked(r, x, key);
      score.push_back(kir::select(visible, x, V(kNothing)));
    }
    V most = score[0];
    for (size_t i = 1; i < score.size(); ++i) most = kir::max(most, score[i]);
    const V before = top(r), earlier = sum(r);
    const V now = kir::max(before, kir::wg_max(most));
    std::vector<V> weight;
    for (size_t i = 0; i < score.size(); ++i) {
      weight.push_back(kir::select(score[i] == kNothing, V(0.f), kir::exp(score[i] - now)));
      weights_.store(r * static_cast<int>(kKeys) + (kir::lane() + static_cast<int>(i) * L_), weight.back());
    }
    const V scale = kir::select(now == before, V(1.f), kir::exp(before - now));
    const V total = kir::fma(earlier, scale, kir::wg_add(kir::sum(weight)));
    kir::If(kir::lane() == 0, [&] {
      state_.store(r * 3, now);
      state_.store(r * 3 + 1, total);
      state_.store(r * 3 + 2, scale);
    });
  }

  V masked(V r, V score, V key) {
    const Operand& o = operand(Role::mask);
    const V columns = l_.size(o.type.shape.back()), row = o.type.shape.size() == 3 ? q_row(r) : token_of(r);
    const Var out = kir::var(kNothing);
    kir::If(key < columns, [&] {
      const V m = bound(Role::mask)[row * columns + key];
      if (o.type.dtype == DType::boolean) {
        out.set(kir::select(m, score, V(kNothing)));
      } else {
        const V bias = convert(m, kir::f32);
        out.set(kir::select(bias < kNothing, V(kNothing), score + bias));
      }
    });
    return out.get();
  }

  // Lanes are components: each value is loaded once for all rows.
  void values(V here) {
    const int size = static_cast<int>(d_.value_size), whole = size / L_;
    kir::For(0, static_cast<uint32_t>(whole), [&](V part) { values_of(part, part * L_ + kir::lane(), here); });
    if (whole < parts_) values_of(kir::constant(kir::u32, whole), kir::min(kir::lane() + whole * L_, size - 1), here);
  }
  void values_of(V part, V column, V here) {
    const int size = static_cast<int>(d_.value_size);
    std::vector<Var> acc;
    for (uint32_t r = 0; r < s_.rows(); ++r) {
      const V row = kir::constant(kir::u32, r);
      acc.push_back(kir::var(kir::f32, sums_[sum_at(row, part)] * shrink(row)));
    }
    kir::For(0, here, [&](V j) {
      const V v = convert(v_[rows_[j] * size + column], kir::f32);
      for (uint32_t r = 0; r < s_.rows(); ++r)
        acc[r].set(kir::fma(weights_[j + static_cast<int>(r * kKeys)], v, acc[r].get()));
    });
    for (uint32_t r = 0; r < s_.rows(); ++r) sums_.store(sum_at(kir::constant(kir::u32, r), part), acc[r].get());
  }
  V sum_at(V row, V part) { return (row * parts_ + part) * L_ + kir::lane(); }

  void finish() {
    const int size = static_cast<int>(d_.value_size);
    const kir::Type type = kir::type_info(out_.type()).loaded;
    each_row([&](V r) {
      const V total = sum(r), inverse = kir::select(total == 0.f, V(0.f), 1.f / total);
      kir::If(first_token_ + r / static_cast<int>(s_.heads) < tokens_, [&] {
        kir::For(0, static_cast<uint32_t>(parts_), [&](V part) {
          const V column = part * L_ + kir::lane();
          auto store = [&] { out_.store(q_row(r) * size + column, convert(sums_[sum_at(r, part)] * inverse, type)); };
          if (size % L_ == 0)
            store();
          else
            kir::If(column < size, store);
        });
      });
    });
  }

  Launcher& l_;
  const Problem& p_;
  const AttentionDesc& d_;
  const Shape4& s_;
  int L_, parts_ = 1;
  kir::Buffer q_, k_, v_, pages_, row_start_, kv_length_, position_, out_;
  Shared queries_, weights_, sums_, rows_, seen_, state_, tokens_of_;
  V heads_, kv_heads_, first_token_, kv_head_, first_head_, tokens_, sequences_;
  std::vector<V> sequence_, at_;  // by token
};

Status build_attention(const Problem& problem, const Bid&, BuildCtx& ctx) {
  const auto& d = std::get<AttentionDesc>(problem.desc);
  const Shape4 s = shape_of(d, ctx.asked.caps, ctx.asked.dims.range(problem.extent[0], problem.bounds).second);
  Launcher l(ctx, problem, "attention", s.lanes);
  Attention(l, d, s).run();
  DimTable& dims = ctx.asked.dims;
  return l.launch(dims.mul(dims.ceildiv(problem.extent[0], s.tokens), static_cast<int64_t>(d.heads / s.heads)));
}

OrRefuse<std::vector<Bid>> bid_attention(const Problem& problem, const Asked& asked) {
  const auto& d = std::get<AttentionDesc>(problem.desc);
  if (!d.paged) return refuse("reads paged keys only; dense attention decomposes");
  if (d.head_size == 0 || d.value_size == 0 || d.kv_heads == 0 || d.heads % d.kv_heads != 0)
    return refuse("head sizes are not constant");
  for (const Role role :
       {Role::q, Role::k, Role::v, Role::row_start, Role::kv_length, Role::pages, Role::position, Role::out}) {
    if (find_role(problem, role) < 0) return refuse("an operand is missing");
  }
  for (const Role role : {Role::q, Role::k, Role::v, Role::out}) {
    const DType t = problem.operands[static_cast<size_t>(find_role(problem, role))].type.dtype;
    if (t != DType::f32 && t != DType::f16 && t != DType::bf16)
      return refuse("attention is over f32, f16 or bf16, not " + std::string(dtype_name(t)));
  }
  const DType out = problem.operands[static_cast<size_t>(find_role(problem, Role::out))].type.dtype;
  if (out != DType::f32 && !asked.caps.f16_storage) return refuse("the device stores no halves");
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(problem));
  TERN_ACCEPT([[maybe_unused]] const Unit fit, check_bindings(problem, layouts, asked));
  const double tokens = largest(asked, problem, problem.extent[0]);
  const Shape4 s = shape_of(d, asked.caps, static_cast<int64_t>(tokens));
  const uint64_t memory = 4ull * s.rows() * (d.head_size + d.value_size + s.lanes + kKeys + 3) + kFixed;
  if (memory > asked.caps.workgroup_bytes)
    return refuse("a row takes " + std::to_string(memory) + " bytes of workgroup memory");
  Bid bid;
  bid.layouts = std::move(layouts);
  bid.numerics = numerics_tag("attention 3", {static_cast<int64_t>(s.lanes), d.head_size}, asked.caps);
  for (size_t i = 0; i < bid.layouts.size(); ++i)
    bid.bytes += bytes_of(problem.operands[i], bid.layouts[i], problem, asked);
  const auto& k = problem.operands[static_cast<size_t>(find_role(problem, Role::k))];
  bid.flop = 2.0 * tokens * d.heads * (d.head_size + d.value_size) * largest(asked, problem, k.type.shape[0]);
  bid.seconds =
      asked.caps.launch_s + std::max(bid.bytes / asked.caps.read_bytes_per_s, bid.flop / asked.caps.flop_per_s);
  bid.variant = "t" + std::to_string(s.tokens) + " h" + std::to_string(s.heads);
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kAttentionKernel;
const Candidate kAttentionKernel = {"attention", Family::attention, kernels::bid_attention, kernels::build_attention};

}  // namespace tern
