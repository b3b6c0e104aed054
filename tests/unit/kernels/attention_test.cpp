// Attention against a plain f64 loop; rows against each other byte by byte, whatever the chunk they come in.
#include "unit/kernels/harness.h"
#include "unit/kernels/kv_states.h"

namespace tern::test {

namespace {

struct Config {
  uint32_t heads = 6, kv_heads = 2, head_size = 32, value_size = 32, page = 8;
  bool causal = true;
  uint32_t window = 0;
  double soft_cap = 0;
  int mask = 0;  // 1: floats [T, C], 2: bools [T, H, C]
  bool sinks = false;
  KvKind kv = KvKind::f16;
  bool precise = false;
};

// Sequences of a step: how many of its last tokens are queries now, and its keys in all.
struct Sequence {
  int64_t queries, keys;
};

struct World {
  Config c;
  int64_t pages_each = 0;
  KvState k, v;
  std::vector<int32_t> pages;  // by sequence

  World(const Config& config, int64_t sequences, int64_t most_keys)
      : c(config),
        pages_each((most_keys + c.page - 1) / c.page),
        k(c.kv, true, sequences * pages_each + 3, c.kv_heads, c.head_size, c.page),
        v(c.kv, false, sequences * pages_each + 3, c.kv_heads, c.value_size, c.page) {
    Random r(71);
    k.fill(r), v.fill(r);
    std::vector<int32_t> all;
    for (int32_t i = 0; i < static_cast<int32_t>(k.pages); ++i) all.push_back(i);
    for (size_t i = all.size(); i-- > 1;) std::swap(all[i], all[r.below(static_cast<uint32_t>(i + 1))]);
    pages.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(sequences * pages_each));
  }
};

// q of the token at position p of sequence s is the same in every step.
float query(int64_t s, int64_t p, size_t i) {
  Random r(static_cast<uint64_t>(s * 10007 + p * 131 + static_cast<int64_t>(i)) + 5);
  r.next();
  return r.real() * 3;
}
float bias(int64_t p, int64_t h, int64_t key) { return static_cast<float>((p * 7 + h * 3 + key) % 5) * 0.3f; }
bool shown(int64_t p, int64_t h, int64_t key) { return (p + h + key) % 3 != 0; }

TensorType pages_of(const KvState& s) {
  const auto type = kv_state_type(s.kind, s.keys, s.pages, s.heads, s.size, s.page);
  EXPECT_TRUE(type.ok());
  int64_t rest = 1;
  for (size_t a = 1; a < type->shape.size(); ++a) rest *= *type->shape[a].constant();
  return {type->dtype, {s.pages, rest}, nullptr};
}

std::vector<float> run_attention(const Place& place, const World& w, const std::vector<Sequence>& step,
                                 int64_t most_tokens) {
  const Config& c = w.c;
  Case k;
  int64_t tokens = 0;
  for (const Sequence& s : step) tokens += s.queries;
  const Dim t = k.symbol("T", 1, most_tokens, tokens), s = k.symbol("S", 1, 8, static_cast<int64_t>(step.size()));
  k.p.family = Family::attention;
  k.p.extent = {t, s};
  AttentionDesc d;
  d.heads = c.heads, d.kv_heads = c.kv_heads, d.head_size = c.head_size, d.value_size = c.value_size, d.page = c.page;
  d.scale = 0.2, d.causal = c.causal, d.window = c.window, d.soft_cap = c.soft_cap, d.kv = c.kv;
  k.p.policy.precise = c.precise;
  k.p.desc = d;
  const int64_t columns = 200;
  const auto q = k.add(Role::q, {DType::f32, {t, c.heads, c.head_size}}),
             kk = k.add(Role::k, pages_of(w.k), Access::read, Origin::state),
             vv = k.add(Role::v, pages_of(w.v), Access::read, Origin::state),
             rs = k.add(Role::row_start, {DType::i32, {k.dims.add(s, 1)}}),
             kl = k.add(Role::kv_length, {DType::i32, {s}}), pg = k.add(Role::pages, {DType::i32, {s, w.pages_each}}),
             po = k.add(Role::position, {DType::i32, {t}});
  const auto mask = c.mask == 1   ? k.add(Role::mask, {DType::f32, {t, columns}})
                    : c.mask == 2 ? k.add(Role::mask, {DType::boolean, {t, c.heads, columns}})
                                  : uint16_t{0};
  const auto sinks = c.sinks ? k.add(Role::sinks, {DType::f32, {c.heads}}) : uint16_t{0};
  const auto out = k.add(Role::out, {DType::f32, {t, c.heads, c.value_size}}, Access::write);
  k.output(out);
  Bid bid;
  EXPECT_TRUE(k.choose("attention", place.caps, &bid)) << k.error;
  if (testing::Test::HasNonfatalFailure()) return {};
  std::vector<float> qs;
  std::vector<int32_t> starts = {0}, lengths, positions, table;
  std::vector<float> biases;
  std::vector<uint8_t> flags;
  for (size_t i = 0; i < step.size(); ++i) {
    for (int64_t j = 0; j < step[i].queries; ++j) {
      const int64_t p = step[i].keys - step[i].queries + j;
      positions.push_back(static_cast<int32_t>(p));
      for (size_t e = 0; e < c.heads * c.head_size; ++e) qs.push_back(query(static_cast<int64_t>(i), p, e));
      for (int64_t key = 0; key < columns; ++key) biases.push_back(bias(p, 0, key));
      for (int64_t h = 0; h < c.heads; ++h) {
        for (int64_t key = 0; key < columns; ++key) flags.push_back(shown(p, h, key));
      }
    }
    starts.push_back(starts.back() + static_cast<int32_t>(step[i].queries));
    lengths.push_back(static_cast<int32_t>(step[i].keys));
    table.insert(table.end(), w.pages.begin() + static_cast<std::ptrdiff_t>(static_cast<int64_t>(i) * w.pages_each),
                 w.pages.begin() + static_cast<std::ptrdiff_t>((static_cast<int64_t>(i) + 1) * w.pages_each));
  }
  k.set(q, qs), k.set(kk, w.k.bytes), k.set(vv, w.v.bytes), k.set(rs, starts), k.set(kl, lengths), k.set(pg, table),
      k.set(po, positions);
  if (c.mask == 1) k.set(mask, biases);
  if (c.mask == 2) k.set(mask, flags);
  if (c.sinks) {
    std::vector<float> sink;
    for (uint32_t h = 0; h < c.heads; ++h) sink.push_back(0.1f * static_cast<float>(h));
    k.set(sinks, sink);
  }
  k.run("attention", place.caps, bid, place.interpret);
  return k.get<float>(out);
}

// A query as kernels see it: scaled, and in int8 blocks of 32 where they meet quantised keys so.
std::vector<double> seen_query(const Config& c, bool int8, int64_t s, int64_t p, int64_t h) {
  std::vector<float> q;
  for (uint32_t e = 0; e < c.head_size; ++e) q.push_back(query(s, p, static_cast<size_t>(h * c.head_size + e)) * 0.2f);
  for (size_t b = 0; int8 && b < q.size(); b += 32) {
    float most = 0;
    for (size_t e = b; e < b + 32; ++e) most = std::max(most, std::abs(q[e]));
    for (size_t e = b; e < b + 32; ++e) q[e] = std::nearbyint(q[e] * (127.f / most)) * (most / 127);
  }
  return {q.begin(), q.end()};
}

std::vector<double> expected(const World& w, bool int8, int64_t s, int64_t p, int64_t keys, int64_t h) {
  const Config& c = w.c;
  std::vector<double> out(c.value_size, 0.0), score;
  std::vector<int64_t> slot;
  const int64_t kv = h / (c.heads / c.kv_heads);
  const std::vector<double> q = seen_query(c, int8, s, p, h);
  for (int64_t j = 0; j < keys; ++j) {
    if ((c.causal && j > p) || (c.window && p - j >= c.window) || (c.mask == 2 && !shown(p, h, j))) continue;
    const int64_t at = int64_t{w.pages[static_cast<size_t>(s * w.pages_each + j / c.page)]} * c.page + j % c.page;
    double x = 0;
    for (int64_t e = 0; e < c.head_size; ++e) x += q[static_cast<size_t>(e)] * static_cast<double>(w.k.get(at, kv, e));
    if (c.soft_cap > 0) x = std::tanh(x / c.soft_cap) * c.soft_cap;
    if (c.mask == 1) x += static_cast<double>(bias(p, 0, j));
    score.push_back(x), slot.push_back(at);
  }
  double most = c.sinks ? 0.1 * static_cast<double>(h) : -1e300;
  for (double x : score) most = std::max(most, x);
  double total = c.sinks ? std::exp(0.1 * static_cast<double>(h) - most) : 0;
  for (double& x : score) total += x = std::exp(x - most);
  for (size_t j = 0; j < score.size(); ++j) {
    for (int64_t e = 0; e < c.value_size; ++e)
      out[static_cast<size_t>(e)] += score[j] / total * static_cast<double>(w.v.get(slot[j], kv, e));
  }
  return out;
}

void check(const Place& place, const Config& c, const std::vector<Sequence>& step) {
  const World w(c, static_cast<int64_t>(step.size()), 160);
  const Caps& caps = place.caps;
  const bool int8 = is_quantised(c.kv) && !c.precise && caps.dot4 == Dot4::fast && caps.dot4_code_bits >= kv_bits(c.kv);
  const auto y = run_attention(place, w, step, 32);
  if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
  size_t at = 0;
  for (size_t s = 0; s < step.size(); ++s) {
    for (int64_t j = 0; j < step[s].queries; ++j) {
      for (int64_t h = 0; h < c.heads; ++h) {
        for (const double want :
             expected(w, int8, static_cast<int64_t>(s), step[s].keys - step[s].queries + j, step[s].keys, h)) {
          ASSERT_NEAR(y[at], want, 2e-5) << "sequence " << s << " query " << j << " head " << h;
          ++at;
        }
      }
    }
  }
}

}  // namespace

TEST(Attention, MatchesF64) {
  const std::vector<Sequence> mixed = {{1, 77}, {5, 5}, {3, 130}, {1, 1}};
  for (const Place& place : places()) {
    SCOPED_TRACE(place.name);
    check(place, {}, mixed);
    for (const KvKind kv : kKvKinds) {
      SCOPED_TRACE(kv_kind_name(kv));
      check(place, {.kv = kv}, mixed);
      if (place.emulated) continue;
      // Pages that lanes span, a head of an odd number of blocks, values of another size.
      check(place, {.value_size = 64, .page = 32, .kv = kv, .precise = true}, {{3, 130}});
    }
    check(place, {.heads = 2, .kv_heads = 1, .head_size = 96, .value_size = 96, .page = 1, .kv = KvKind::q8},
          {{2, 70}});
    check(place, {.heads = 2, .kv_heads = 1, .head_size = 96, .value_size = 96, .page = 1, .kv = KvKind::q4},
          {{2, 70}});
    check(place, {.heads = 9, .kv_heads = 3, .head_size = 64, .value_size = 64, .page = 16}, {{4, 100}});
    check(place, {.heads = 4, .kv_heads = 4, .head_size = 20, .value_size = 12, .page = 1}, mixed);
    check(place, {.causal = false}, mixed);
    check(place, {.window = 20}, mixed);
    check(place, {.heads = 4, .kv_heads = 1, .head_size = 256, .value_size = 256, .page = 32, .window = 70},
          {{5, 140}});
    check(place, {.soft_cap = 2}, {{2, 70}});
    Place roomy = place;  // the mean device's 8 bindings are all taken without mask and sinks
    roomy.caps.max_bindings = 10;
    check(roomy, {.mask = 1}, {{2, 70}});
    check(roomy, {.mask = 2, .sinks = true}, {{2, 70}, {1, 9}});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Attention, RowsDoNotDependOnChunks) {
  for (const Place& place : places()) {
    if (place.emulated) continue;  // its rows are the interpreter's
    SCOPED_TRACE(place.name);
    const Config plain{.heads = 9, .kv_heads = 3, .head_size = 64, .value_size = 64};
    // Rows of a tile see windows that begin in different blocks of keys.
    const Config windowed{.heads = 4, .kv_heads = 1, .head_size = 256, .value_size = 256, .page = 32, .window = 40};
    std::vector<Config> all_of_them = {windowed};
    for (const KvKind kv : {KvKind::f16, KvKind::q8, KvKind::q4})
      all_of_them.push_back(plain), all_of_them.back().kv = kv;
    for (const Config& c : all_of_them) {
      const World w(c, 2, 160);
      const auto all = run_attention(place, w, {{13, 113}, {2, 90}}, 64);
      const size_t row = c.heads * c.value_size;
      for (int64_t j : {0, 5, 12}) {
        const auto one = run_attention(place, w, {{1, 101 + j}}, 1);
        if (HasFatalFailure()) return;
        ASSERT_EQ(std::memcmp(one.data(), all.data() + static_cast<size_t>(j) * row, row * 4), 0) << "query " << j;
      }
    }
  }
}

}  // namespace tern::test
