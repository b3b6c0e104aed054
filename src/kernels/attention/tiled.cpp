// attention over a paged KV state, with a running maximum (flash attention, Dao et al. 2022), for tiles of queries that
// share keys.
//
// A workgroup owns up to R rows: Q consecutive tokens times the G query heads of one kv head. Keys are taken in blocks
// of 64 at fixed absolute positions. While products are summed lanes are keys (of 16-bit floats a key has two lanes,
// for even and odd components, as its words lie in memory), while values are they are components: each is loaded once
// for all rows. What a row's numbers are made of depends on its own keys alone: a key that it does not see weighs 0 and
// leaves sums as they are, so neither the tile, the chunk a token came in nor its neighbours change a bit.
//
// Quantised keys meet queries in int8, blocks of 32 with a scale each, where the device multiplies bytes; else, and
// where the policy is precise, their codes meet float queries.
#include <algorithm>

#include "kernels/common/blocks.h"
#include "kernels/common/expr.h"

namespace tern {

namespace kernels {
namespace {

using kir::Shared;
using kir::V;
using kir::Var;

constexpr float kNothing = -3.0e38f;           // below every score; finite, so that differences stay numbers
constexpr uint32_t kKeys = 64;                 // of a block
constexpr uint32_t kFixed = 32 * kKeys + 512;  // bytes of workgroup memory beside the rows' and the scales'

constexpr uint32_t kUsualSums = 12, kOtherSums[] = {6, 24};

struct Tiling {
  uint32_t lanes = 1, heads = 1, tokens = 1;  // L; query heads and tokens of a workgroup
  uint32_t sums = kUsualSums;                 // registers' worth of accumulators, in lanes
  uint32_t rows() const { return heads * tokens; }
};

bool int8_scores(const Problem& p, const Caps& caps) {
  const KvKind kv = std::get<AttentionDesc>(p.desc).kv;
  return is_quantised(kv) && !p.policy.precise && caps.dot4 == Dot4::fast && caps.dot4_code_bits >= kv_bits(kv);
}
uint32_t value_blocks(const AttentionDesc& d) { return is_quantised(d.kv) ? d.value_size / kCodes : 1; }
int lanes_per_key(KvKind kv) { return is_quantised(kv) ? 1 : 32 / kv_bits(kv); }

uint64_t row_bytes(const AttentionDesc& d, uint32_t lanes) {
  const uint64_t codes = is_quantised(d.kv) ? d.head_size / 4 + 2 * (d.head_size / kCodes) : 0;
  return 4ull * (d.head_size + d.value_size + lanes + kKeys * (value_blocks(d) + lanes_per_key(d.kv)) + codes + 3);
}
uint64_t fixed_bytes(const AttentionDesc& d) {
  return kFixed + (is_quantised(d.kv) ? 4ull * kKeys * value_blocks(d) : 0);
}

Tiling tiling_of(const AttentionDesc& d, const Caps& caps, int64_t most_tokens, uint32_t sums) {
  Tiling s;
  s.sums = sums;
  // Two registers a value where there are 32 of them: with one, few rows leave too few sums in flight. And where they
  // are of four lanes: the weights of a block of keys, written out, would be too long a kernel.
  const uint32_t vectors = caps.lanes >= 16 || caps.lanes <= 4 ? 2 : 1;
  s.lanes = std::min<uint32_t>(floor_power_of_two(std::min(vectors * caps.lanes, caps.max_lanes)), kKeys);
  const uint32_t group = d.heads / d.kv_heads;
  for (uint32_t h = 1; h <= std::min(group, s.sums); ++h) {
    if (group % h == 0) s.heads = h;
  }
  const uint64_t memory = caps.workgroup_bytes - std::min<uint64_t>(fixed_bytes(d), caps.workgroup_bytes);
  const auto fit = static_cast<uint32_t>(std::max<uint64_t>(1, memory / row_bytes(d, s.lanes)));
  while (s.heads > 1 && (s.heads > fit || group % s.heads != 0)) --s.heads;
  s.tokens = std::clamp<uint32_t>(std::min(fit, s.sums) / s.heads, 1, 8);
  s.tokens = static_cast<uint32_t>(std::min<int64_t>(s.tokens, std::max<int64_t>(most_tokens, 1)));
  return s;
}

V zero() { return kir::constant(kir::u32, 0); }
// The largest divisor of n up to `most`.
uint32_t divisor(uint32_t n, uint32_t most) {
  uint32_t d = std::max<uint32_t>(1, std::min(n, most));
  while (n % d != 0) --d;
  return d;
}
V as_i32(const V& v) { return v.type() == kir::i32 ? v : kir::cast(kir::i32, v); }

class Attention {
 public:
  Attention(Launcher& l, const AttentionDesc& d, const Tiling& s)
      : l_(l), p_(l.problem()), d_(d), s_(s), L_(static_cast<int>(s.lanes)) {
    q_ = bound(Role::q), k_ = bound(Role::k), v_ = bound(Role::v), pages_ = bound(Role::pages),
    position_ = bound(Role::position);
    row_start_ = bound(Role::row_start), kv_length_ = bound(Role::kv_length), out_ = bound(Role::out);
    parts_ = (static_cast<int>(d.value_size) + L_ - 1) / L_;
    per_key_ = lanes_per_key(d.kv), per_sub_ = L_ / per_key_;
    quantised_ = is_quantised(d.kv), int8_ = int8_scores(p_, l.caps());
    queries_ = kir::shared("q", kir::f32, s.rows() * d.head_size);
    scores_ = kir::shared("s", kir::f32, s.rows() * kKeys * static_cast<uint32_t>(per_key_));
    weights_ = kir::shared("p", kir::f32, s.rows() * kKeys * value_blocks(d));
    sums_ = kir::shared("o", kir::f32, s.rows() * static_cast<uint32_t>(parts_) * s.lanes);
    key_at_ = kir::shared("k_at", kir::u32, 2 * kKeys), value_at_ = kir::shared("v_at", kir::u32, 2 * kKeys);
    seen_ = kir::shared("seen", kir::u32, 2 * kKeys);
    state_ = kir::shared("state", kir::f32, 3 * s.rows());
    tokens_of_ = kir::shared("tokens", kir::i32, 2 * s.tokens);
    if (quantised_) {
      scale_at_ = kir::shared("v_scale_at", kir::u32, 2 * kKeys);
      value_scales_ = kir::shared("v_scales", kir::f32, kKeys * value_blocks(d));
    }
    if (!int8_) return;
    const uint32_t blocks = d.head_size / kCodes;
    codes_ = kir::shared("q_codes", kir::u32, s.rows() * d.head_size / 4);
    code_scales_ = kir::shared("q_scales", kir::f32, s.rows() * blocks);
    code_sums_ = kir::shared("q_sums", kir::i32, s.rows() * blocks);
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
    if (int8_) {
      each_row([&](V r) { quantise_row(r); });
      kir::barrier();
    }
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
    kir::For(0, kKeys * static_cast<uint32_t>(per_key_) / s_.lanes,
             [&](V i) { scores_.store(r * static_cast<int>(kKeys) * per_key_ + (i * L_ + kir::lane()), V(0.f)); });
    const int sinks = find_role(p_, Role::sinks);
    const V first = sinks < 0 ? kir::constant(kir::f32, static_cast<double>(kNothing))
                              : convert(l_.operand(static_cast<uint16_t>(sinks))[head_of(r)], kir::f32);
    kir::If(kir::lane() == 0, [&] {
      state_.store(r * 3, first);
      state_.store(r * 3 + 1, V(sinks < 0 ? 0.f : 1.f));
    });
  }

  // The row's query in int8: words of four codes, and of each block scale and sum of codes.
  void quantise_row(V r) {
    const int size = static_cast<int>(d_.head_size), blocks = size / kCodes;
    kir::For(0, static_cast<uint32_t>(blocks), [&](V b) {
      const V from = r * size + b * kCodes;
      V most = V(0.f);
      for (int i = 0; i < kCodes; i += L_)
        most = kir::max(most, kir::abs(queries_[from + kir::min(kir::lane() + i, kCodes - 1)]));
      most = kir::wg_max(most);
      const Int8Scale by = int8_scale(most);
      V sum = kir::constant(kir::i32, 0);
      for (int i = 0; i < kCodes / 4; i += L_) {
        const V w = kir::lane() + i;
        V word = kir::constant(kir::u32, 0);
        V mine = kir::constant(kir::i32, 0);
        for (int k = 0; k < 4; ++k) {
          const V code = kir::cast(kir::i32, kir::round(queries_[from + kir::min(w * 4 + k, kCodes - 1)] * by.inverse));
          word = word | (kir::bitcast(kir::u32, code) & 0xff) << (8 * k);
          mine = mine + code;
        }
        kir::If(w < kCodes / 4, [&] { codes_.store(r * (size / 4) + b * (kCodes / 4) + w, word); });
        sum = sum + kir::select(w < kCodes / 4, mine, kir::constant(kir::i32, 0));
      }
      sum = kir::wg_add(sum);
      kir::If(kir::lane() == 0, [&] {
        code_scales_.store(r * blocks + b, by.scale);
        code_sums_.store(r * blocks + b, sum);
      });
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
    // While a block is looked at, the next one's place is known, and memory asked for it.
    const V from = kir::cast(kir::u32, first) / size;
    place(s, from, kir::cast(kir::u32, keys));
    kir::barrier();
    kir::For(from, (kir::cast(kir::u32, end) + (size - 1)) / size, [&](V block) {
      const V here = kir::min(kir::cast(kir::u32, end) - block * size, kir::constant(kir::u32, kKeys));
      half_ = block % 2 * size, next_half_ = size - half_;
      place(s, block + 1, kir::cast(kir::u32, keys));
      if (quantised_) load_value_scales();
      scores(here);
      kir::barrier();
      const uint32_t side_by_side = divisor(s_.rows(), 8 * s_.lanes / kKeys);
      kir::For(0, s_.rows() / side_by_side, [&](V g) {
        std::vector<Weighed> rows(side_by_side);
        for (uint32_t i = 0; i < side_by_side; ++i)
          rows[i].row = g * static_cast<int>(side_by_side) + static_cast<int>(i);
        weigh(rows, s, block * size);
      });
      kir::barrier();
      values(here);
      kir::barrier();
    });
  }
  V row_start_first(V s) { return as_i32(row_start_[s]); }

  // Where the block's keys and values lie; those that lie nowhere take the first place and are not seen.
  void place(V s, V block, V keys) {
    const int page = static_cast<int>(d_.page);
    const int size = static_cast<int>(d_.head_size), values = static_cast<int>(d_.value_size);
    const V per_sequence = l_.argument(operand(Role::pages).type.shape[1]),
            pages = l_.argument(operand(Role::k).type.shape[0]);
    const V half = block % 2 * static_cast<int>(kKeys);
    kir::For(0, kKeys / s_.lanes, [&](V sub) {
      const V key = block * static_cast<int>(kKeys) + (sub * L_ + kir::lane()), at = half + (sub * L_ + kir::lane());
      const V inside = key < keys && key / page < per_sequence;
      const V entry = as_i32(pages_[s * per_sequence + kir::select(inside, key / page, zero())]);
      const V which = kir::bitcast(kir::u32, entry);
      const V good = inside && 0 <= entry && which < pages;
      const V head = kir::select(good, which, zero()) * kv_heads_ + kv_head_, token = key % page;
      seen_.store(at, kir::cast(kir::u32, good));
      if (!quantised_) {
        key_at_.store(at, head * (size * page) + token * per_key_);
        value_at_.store(at, head * (values * page) + token * values);
        return;
      }
      const int words = static_cast<int>(kv_words(d_.kv, values) * page), row = values * kv_bits(d_.kv) / 8;
      key_at_.store(at, head * static_cast<int>(kv_words(d_.kv, size) * page) + token);
      value_at_.store(at, head * (words * 4) + token * row);
      scale_at_.store(at, head * words + (token + row / 4 * page));
    });
  }

  void load_value_scales() {
    const int page = static_cast<int>(d_.page), blocks = static_cast<int>(value_blocks(d_));
    kir::For(0, kKeys / s_.lanes, [&](V sub) {
      const V key = sub * L_ + kir::lane();
      const V own = scale_at_[half_ + key], shared = scale_at_[half_ + sub * L_] + kir::lane();
      const V from = d_.page % s_.lanes == 0 ? shared : own;
      kir::For(0, static_cast<uint32_t>(kv_scale_words(d_.value_size)), [&](V s) {
        const V word = v_[from + s * page];
        each_half(blocks, s, [&](const V& b, int which) {
          value_scales_.store(b * static_cast<int>(kKeys) + key, kir::half_to_f32(which == 0 ? word : word >> 16));
        });
      });
    });
  }

  // Asks memory for `count` elements from `first` on, a cache line at a time.
  static void ask(const kir::Buffer& b, const V& first, int count) {
    const int line = 64 / static_cast<int>(kir::type_bytes(b.type()));
    for (int at = 0; at < count; at += line) b.prefetch(first + at);
  }

  // Registers that a value of all lanes takes.
  uint32_t registers() const { return std::max<uint32_t>(1, s_.lanes / std::max<uint32_t>(1, l_.caps().lanes)); }
  // How many of `n` columns of lanes to take at once: as many sums of all rows as stay in registers.
  uint32_t at_once(uint32_t n, uint32_t sums_each) const {
    return divisor(n, s_.sums * (l_.caps().lanes >= 16 ? 2 : 1) / (s_.rows() * registers() * sums_each));
  }

  // Lanes are keys: sums over the components, for all rows at once.
  void scores(V here) {
    const uint32_t subs = kKeys / static_cast<uint32_t>(per_sub_), together = at_once(subs, int8_ ? 2 : 1);
    const int step = static_cast<int>(together) * per_sub_;
    kir::For(0, (here + (step - 1)) / step, [&](V g) {
      std::vector<V> at, next;  // of each lane's key in elements, and of the first lane's key in the next block
      for (uint32_t u = 0; u < together; ++u) {
        const V first = g * step + static_cast<int>(u) * per_sub_;
        const V own = kir::lane() / per_key_;
        const bool one_page = d_.page % static_cast<uint32_t>(per_sub_) == 0;
        at.push_back(one_page ? key_at_[half_ + first] + kir::lane()
                              : key_at_[half_ + (first + own)] + kir::lane() % per_key_);
        if (one_page) next.push_back(key_at_[next_half_ + first]);
      }
      next_keys_ = std::move(next);
      const std::vector<V> sums = !quantised_ ? products(at) : int8_ ? int8_products(at) : code_products(at);
      for (uint32_t r = 0; r < s_.rows(); ++r) {
        for (uint32_t u = 0; u < together; ++u) {
          const V to = (g * step + static_cast<int>(u) * per_sub_) * per_key_ + kir::lane();
          scores_.store(to + static_cast<int>(r * kKeys) * per_key_, sums[r * together + u]);
        }
      }
    });
  }

  std::vector<Var> sums_of(size_t keys) const {
    std::vector<Var> out;
    for (size_t i = 0; i < s_.rows() * keys; ++i) out.push_back(kir::var(0.f));
    return out;
  }
  static std::vector<V> values_of_vars(const std::vector<Var>& vars) {
    std::vector<V> out;
    for (const Var& v : vars) out.push_back(v.get());
    return out;
  }

  std::vector<V> products(const std::vector<V>& at) {
    const int size = static_cast<int>(d_.head_size);
    const std::vector<Var> sum = sums_of(at.size());
    kir::For(0, static_cast<uint32_t>(size / per_key_), [&](V c) {
      std::vector<V> k;
      const V row = c * (static_cast<int>(d_.page) * per_key_);
      for (const V& a : at) k.push_back(convert(k_[a + row], kir::f32));
      for (const V& n : next_keys_) ask(k_, n + row, L_);
      for (uint32_t r = 0; r < s_.rows(); ++r) {
        const V q = queries_[c * per_key_ + (static_cast<int>(r) * size + kir::lane() % per_key_)];
        for (size_t u = 0; u < at.size(); ++u) {
          const Var& mine = sum[r * at.size() + u];
          mine.set(kir::fma(k[u], q, mine.get()));
        }
      }
    });
    return values_of_vars(sum);
  }

  // Calls f(block, scales by key column) for each block of quantised keys.
  void each_block(const std::vector<V>& at, const std::function<void(V, const std::vector<V>&)>& f) {
    const int size = static_cast<int>(d_.head_size), page = static_cast<int>(d_.page), blocks = size / kCodes;
    const int words = static_cast<int>(kv_code_words(d_.kv, size));
    kir::For(0, static_cast<uint32_t>(kv_scale_words(size)), [&](V s) {
      std::vector<V> word;
      for (const V& a : at) word.push_back(k_[a + (s + words) * page]);
      each_half(blocks, s, [&](const V& block, int which) {
        std::vector<V> scale;
        for (const V& w : word) scale.push_back(kir::half_to_f32(which == 0 ? w : w >> 16));
        f(block, scale);
      });
    });
  }
  // Calls f(codes by key column, quad of the block) with words of four unsigned codes.
  void each_quad(const std::vector<V>& at, V block, const std::function<void(const std::vector<V>&, V)>& f) {
    const bool eight = d_.kv == KvKind::q8;
    const int words = eight ? 8 : 4, page = static_cast<int>(d_.page);
    kir::For(0, static_cast<uint32_t>(words), [&](V w) {
      std::vector<V> word;
      for (const V& a : at) word.push_back(k_[a + (block * words + w) * page]);
      for (const V& n : next_keys_) ask(k_, n + (block * words + w) * page, L_);
      if (eight) return f(word, w);
      std::vector<V> low, high;
      for (const V& x : word) low.push_back(x & 0x0f0f0f0f), high.push_back(x >> 4 & 0x0f0f0f0f);
      f(low, w);
      f(high, w + 4);
    });
  }
  int key_zero() const { return d_.kv == KvKind::q8 ? 128 : 8; }

  std::vector<V> int8_products(const std::vector<V>& at) {
    const int size = static_cast<int>(d_.head_size), blocks = size / kCodes;
    const std::vector<Var> sum = sums_of(at.size());
    each_block(at, [&](V block, const std::vector<V>& scale) {
      std::vector<Var> dot;
      for (uint32_t r = 0; r < s_.rows(); ++r) {
        const V from = code_sums_[block + static_cast<int>(r) * blocks] * -key_zero();
        for (size_t u = 0; u < at.size(); ++u) dot.push_back(kir::var(kir::i32, from));
      }
      each_quad(at, block, [&](const std::vector<V>& codes, V quad) {
        for (uint32_t r = 0; r < s_.rows(); ++r) {
          const V q = codes_[block * (kCodes / 4) + quad + static_cast<int>(r) * (size / 4)];
          for (size_t u = 0; u < at.size(); ++u) {
            const Var& mine = dot[r * at.size() + u];
            mine.set(kir::dot4(mine.get(), codes[u], q));
          }
        }
      });
      add_block(sum, dot, scale, block, blocks);
    });
    return values_of_vars(sum);
  }
  void add_block(const std::vector<Var>& sum, const std::vector<Var>& dot, const std::vector<V>& scale, const V& block,
                 int blocks) {
    for (uint32_t r = 0; r < s_.rows(); ++r) {
      const V q = code_scales_[block + static_cast<int>(r) * blocks];
      for (size_t u = 0; u < scale.size(); ++u) {
        const size_t i = r * scale.size() + u;
        sum[i].set(kir::fma(kir::cast(kir::f32, dot[i].get()), scale[u] * q, sum[i].get()));
      }
    }
  }

  std::vector<V> code_products(const std::vector<V>& at) {
    const int size = static_cast<int>(d_.head_size);
    const std::vector<Var> sum = sums_of(at.size());
    each_block(at, [&](V block, const std::vector<V>& scale) {
      each_quad(at, block, [&](const std::vector<V>& codes, V quad) {
        kir::For(0, 4, [&](V i) {
          std::vector<V> k;
          for (size_t u = 0; u < at.size(); ++u) {
            const V code = kir::bitcast(kir::i32, codes[u] >> (i * 8) & 0xff) - key_zero();
            k.push_back(kir::cast(kir::f32, code) * scale[u]);
          }
          for (uint32_t r = 0; r < s_.rows(); ++r) {
            const V q = queries_[block * kCodes + (quad * 4 + i) + static_cast<int>(r) * size];
            for (size_t u = 0; u < at.size(); ++u) {
              const Var& mine = sum[r * at.size() + u];
              mine.set(kir::fma(k[u], q, mine.get()));
            }
          }
        });
      });
    });
    return values_of_vars(sum);
  }

  // Scores of rows become weights against their running maximum; what was summed before is scaled to it. Rows side by
  // side, since one alone waits for its own maximum, exponentials and sum.
  struct Weighed {
    V row, before, earlier, now;
    std::vector<V> score, weight;  // by lanes of keys
  };
  void weigh(std::vector<Weighed>& rows, V s, V base) {
    const int vectors = static_cast<int>(kKeys) / L_;
    for (Weighed& w : rows) {
      V most;
      for (int i = 0; i < vectors; ++i) {
        w.score.push_back(score_of(w.row, s, base, i * L_));
        most = i == 0 ? w.score[0] : kir::max(most, w.score.back());
      }
      w.before = top(w.row), w.earlier = sum(w.row);
      w.now = kir::max(w.before, kir::wg_max(most));
    }
    for (int i = 0; i < vectors; ++i) {
      for (Weighed& w : rows) {
        const V x = w.score[static_cast<size_t>(i)];
        w.weight.push_back(kir::select(x == kNothing, V(0.f), kir::exp(x - w.now)));
        store_weights(w.row, kir::lane() + i * L_, w.weight.back());
      }
    }
    std::vector<V> total;
    for (const Weighed& w : rows) total.push_back(kir::wg_add(kir::sum(w.weight)));
    for (size_t i = 0; i < rows.size(); ++i) {
      const Weighed& w = rows[i];
      const Var scale = kir::var(1.f);
      kir::If(w.now != w.before, [&] { scale.set(kir::exp(w.before - w.now)); });
      const V all = kir::fma(w.earlier, scale.get(), total[i]);
      kir::If(kir::lane() == 0, [&] {
        state_.store(w.row * 3, w.now);
        state_.store(w.row * 3 + 1, all);
        state_.store(w.row * 3 + 2, scale.get());
      });
    }
  }
  // What the row's query says of the key at `first` + lane of the block; kNothing: it does not see it.
  V score_of(V r, V s, V base, int first) {
    const V t = r / static_cast<int>(s_.heads), place = tokens_of_[t * 2 + 1];
    const V mine =
        kir::bitcast(kir::u32, tokens_of_[t * 2]) == s && row_start_first(s) <= kir::cast(kir::i32, token_of(r));
    const V at = kir::lane() + first, key = base + at, from = (r * static_cast<int>(kKeys) + at) * per_key_;
    V x = scores_[from];
    for (int i = 1; i < per_key_; ++i) x = x + scores_[from + i];
    if (d_.soft_cap > 0) x = kir::tanh(x * static_cast<float>(1 / d_.soft_cap)) * static_cast<float>(d_.soft_cap);
    V visible = seen_[half_ + at] != 0 && mine;
    if (d_.causal) visible = visible && kir::cast(kir::i32, key) <= place;
    if (d_.window > 0) visible = visible && place - kir::cast(kir::i32, key) < static_cast<int>(d_.window);
    if (find_role(p_, Role::mask) >= 0) x = masked(r, x, key);
    return kir::select(visible, x, V(kNothing));
  }
  void store_weights(const V& row, const V& at, const V& weight) {
    if (!quantised_) return weights_.store(weight_at(row, zero()) + at, weight);
    kir::For(0, value_blocks(d_), [&](V b) {
      weights_.store(weight_at(row, b) + at, weight * value_scales_[at + b * static_cast<int>(kKeys)]);
    });
  }
  // Weights of a row, times the scales of a block of components where values have some.
  V weight_at(const V& row, const V& block) const {
    return (row * static_cast<int>(value_blocks(d_)) + block) * static_cast<int>(kKeys);
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
    const uint32_t whole = d_.value_size / s_.lanes;
    const uint32_t together = whole > 0 ? at_once(whole, 1) : 1;
    kir::For(0, whole / together, [&](V g) {
      std::vector<V> parts;
      for (uint32_t u = 0; u < together; ++u) parts.push_back(g * static_cast<int>(together) + static_cast<int>(u));
      values_of(parts, here);
    });
    if (static_cast<int>(whole) < parts_) values_of({kir::constant(kir::u32, whole)}, here);
  }
  void values_of(const std::vector<V>& parts, V here) {
    const int size = static_cast<int>(d_.value_size);
    std::vector<V> column;
    for (const V& part : parts) {
      const V own = part * L_ + kir::lane();
      column.push_back(size % L_ == 0 || parts.size() > 1 ? own : kir::min(own, size - 1));
    }
    std::vector<Var> acc;
    for (uint32_t r = 0; r < s_.rows(); ++r) {
      const V row = kir::constant(kir::u32, r);
      for (const V& part : parts) acc.push_back(kir::var(kir::f32, sums_[sum_at(row, part)] * shrink(row)));
    }
    kir::For(0, here, [&](V j) {
      const V at = value_at_[half_ + j], next = value_at_[next_half_ + j];
      std::vector<V> v;
      for (size_t u = 0; u < parts.size(); ++u) v.push_back(value(at, column[u]));
      ask_values(next, parts);
      for (uint32_t r = 0; r < s_.rows(); ++r) {
        for (size_t u = 0; u < parts.size(); ++u) {
          const V row = kir::constant(kir::u32, r);
          // Lanes of one block share a weight: where lanes are no more than a block's components, all do.
          const V block = !quantised_ ? zero() : (L_ <= kCodes ? parts[u] * L_ : column[u]) / kCodes;
          const Var& mine = acc[r * parts.size() + u];
          mine.set(kir::fma(weights_[weight_at(row, block) + j], v[u], mine.get()));
        }
      }
    });
    for (uint32_t r = 0; r < s_.rows(); ++r) {
      for (size_t u = 0; u < parts.size(); ++u)
        sums_.store(sum_at(kir::constant(kir::u32, r), parts[u]), acc[r * parts.size() + u].get());
    }
  }
  // The next block's values, where a line's components begin in these parts.
  void ask_values(const V& at, const std::vector<V>& parts) {
    const bool bytes = quantised_;
    const kir::Buffer view = bytes ? v_.as(kir::u8) : v_;
    const int columns = d_.kv == KvKind::q4 ? L_ / 2 : L_, count = columns * static_cast<int>(parts.size());
    const int line = 64 / static_cast<int>(kir::type_bytes(view.type()));
    if (count >= line) return ask(view, at + parts[0] * columns, count);
    kir::If(parts[0] * columns % line == 0, [&] { view.prefetch(at + parts[0] * columns); });
  }
  // A component of the value at `at`; quantised: its code.
  V value(const V& at, const V& column) {
    if (d_.kv == KvKind::q8) return kir::cast(kir::f32, v_.as(kir::i8)[at + column]);
    if (d_.kv != KvKind::q4) return convert(v_[at + column], kir::f32);
    const V within = column % kCodes;
    const V byte = v_.as(kir::u8)[at + column / kCodes * 16 + within % 16];
    return kir::cast(kir::f32, kir::bitcast(kir::i32, byte >> within / 16 * 4 & 15) - 8);
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
  const Tiling& s_;
  int L_, parts_ = 1;
  kir::Buffer q_, k_, v_, pages_, row_start_, kv_length_, position_, out_;
  Shared queries_, scores_, weights_, sums_, key_at_, value_at_, seen_, state_, tokens_of_;
  std::vector<V> next_keys_;  // where the next block's keys begin, by column; empty: not known
  V half_, next_half_;        // of what place() keeps: this block's and the next's
  Shared scale_at_, value_scales_, codes_, code_scales_, code_sums_;  // of quantised keys and values
  int per_key_ = 1, per_sub_ = 1;                                     // lanes of a key, keys that lanes hold
  bool quantised_ = false, int8_ = false;
  V heads_, kv_heads_, first_token_, kv_head_, first_head_, tokens_, sequences_;
  std::vector<V> sequence_, at_;  // by token
};

Status build_attention(const Problem& problem, const Bid& bid, BuildCtx& ctx) {
  const auto& d = std::get<AttentionDesc>(problem.desc);
  const Tiling s = tiling_of(d, ctx.asked.caps, ctx.asked.dims.range(problem.extent[0], problem.bounds).second,
                             static_cast<uint32_t>(bid.param[0]));
  Launcher l(ctx, problem, "attention", s.lanes);
  l.b().node_budget(2500);
  Attention(l, d, s).run();
  DimTable& dims = ctx.asked.dims;
  return l.launch(dims.mul(dims.ceildiv(problem.extent[0], s.tokens), static_cast<int64_t>(d.heads / s.heads)));
}

OrRefuse<std::vector<Bid>> bid_attention(const Problem& problem, const Asked& asked) {
  const auto& d = std::get<AttentionDesc>(problem.desc);
  if (d.head_size == 0 || d.value_size == 0 || d.kv_heads == 0 || d.heads % d.kv_heads != 0)
    return refuse("head sizes are not constant");
  for (const Role role :
       {Role::q, Role::k, Role::v, Role::row_start, Role::kv_length, Role::pages, Role::position, Role::out}) {
    if (find_role(problem, role) < 0) return refuse("an operand is missing");
  }
  for (const Role role : {Role::q, Role::out}) {
    const DType t = problem.operands[static_cast<size_t>(find_role(problem, role))].type.dtype;
    if (t != DType::f32 && t != DType::f16 && t != DType::bf16)
      return refuse("attention is over f32, f16 or bf16, not " + std::string(dtype_name(t)));
  }
  const uint32_t multiple = is_quantised(d.kv) ? kCodes : static_cast<uint32_t>(lanes_per_key(d.kv));
  if (d.page == 0 || d.head_size % multiple != 0 || d.value_size % multiple != 0)
    return refuse("heads of " + std::to_string(d.head_size) + " and " + std::to_string(d.value_size) +
                  " are no multiples of " + std::to_string(multiple));
  const DType out = problem.operands[static_cast<size_t>(find_role(problem, Role::out))].type.dtype;
  if (out != DType::f32 && !asked.caps.f16_storage) return refuse("the device stores no halves");
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(problem));
  TERN_ACCEPT([[maybe_unused]] const Unit fit, check_bindings(problem, layouts, asked));
  const double tokens = largest(asked, problem, problem.extent[0]);
  const Tiling s = tiling_of(d, asked.caps, static_cast<int64_t>(tokens), kUsualSums);
  const uint64_t memory = row_bytes(d, s.lanes) * s.rows() + fixed_bytes(d);
  if (memory > asked.caps.workgroup_bytes)
    return refuse("a row takes " + std::to_string(memory) + " bytes of workgroup memory");
  Bid bid;
  bid.layouts = std::move(layouts);
  bid.numerics = numerics_tag(
      "attention 4",
      {static_cast<int64_t>(s.lanes), d.head_size, static_cast<int64_t>(d.kv), int8_scores(problem, asked.caps)},
      asked.caps);
  for (size_t i = 0; i < bid.layouts.size(); ++i)
    bid.bytes += bytes_of(problem.operands[i], bid.layouts[i], problem, asked);
  const auto& k = problem.operands[static_cast<size_t>(find_role(problem, Role::k))];
  bid.flop = 2.0 * tokens * d.heads * (d.head_size + d.value_size) * largest(asked, problem, k.type.shape[0]) * d.page;
  bid.seconds =
      asked.caps.launch_s + std::max(bid.bytes / asked.caps.read_bytes_per_s, bid.flop / asked.caps.flop_per_s);
  std::vector<Bid> bids;
  const auto add = [&](const Tiling& t) {
    bid.variant = "t" + std::to_string(t.tokens) + " h" + std::to_string(t.heads) + " s" + std::to_string(t.sums);
    bid.param[0] = static_cast<int32_t>(t.sums);
    bids.push_back(bid);
  };
  add(s);
  for (const uint32_t sums : kOtherSums) add(tiling_of(d, asked.caps, static_cast<int64_t>(tokens), sums));
  return bids;
}

}  // namespace
}  // namespace kernels

extern const Candidate kAttentionKernel;
const Candidate kAttentionKernel = {"attention", Family::attention, kernels::bid_attention, kernels::build_attention};

}  // namespace tern
