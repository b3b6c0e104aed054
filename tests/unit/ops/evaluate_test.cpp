// Whole graphs: stored weights, states, streaming.
#include <cstring>
#include <set>

#include "graph/op.h"
#include "run.h"

namespace tern {
namespace {

using In = std::map<std::string, Value>;

// Q8_0: blocks of an f16 scale and 32 signed codes. Row r of [2, 64] is 0.5 * code, code = (r + 1) * (i % 7 - 3).
std::vector<std::byte> q8_bytes() {
  std::vector<std::byte> bytes;
  for (int row = 0; row < 2; ++row) {
    for (int block = 0; block < 2; ++block) {
      bytes.push_back(std::byte{0x00});
      bytes.push_back(std::byte{0x38});  // 0.5
      for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<std::byte>((row + 1) * ((block * 32 + i) % 7 - 3)));
    }
  }
  return bytes;
}
double q8_value(int row, int i) { return 0.5 * (row + 1) * (i % 7 - 3); }

TEST(Evaluate, QuantisedWeights) {
  const auto bytes = q8_bytes();
  const TensorView w{DType::f32, {2, 64}, bytes, format_by_name("q8_0")};
  std::vector<double> x(64), want(2, 0.0), row1(64);
  for (int i = 0; i < 64; ++i) {
    x[static_cast<size_t>(i)] = 0.25 * i - 3;
    for (int r = 0; r < 2; ++r) want[static_cast<size_t>(r)] += x[static_cast<size_t>(i)] * q8_value(r, i);
    row1[static_cast<size_t>(i)] = q8_value(1, i);
  }
  expect_close(
      run({{"x", reals({1, 64}, x)}, {"w", w}}, [](Builder& b, In& in) { return linear(b, in["x"], in["w"]); }), {1, 2},
      want);
  expect_close(
      run({{"w", w}, {"ids", whole({1}, {1})}}, [](Builder& b, In& in) { return embedding(b, in["w"], in["ids"]); }),
      {1, 64}, row1);
  expect_error(run({{"w", w}}, [](Builder& b, In& in) { return exp(b, in["w"]); }),
               "blocks are read by dot_general and gather only");
  expect_error(run({{"w", w}, {"x", reals({2, 1}, {1, 2})}},
                   [](Builder& b, In& in) { return dot_general(b, in["x"], in["w"], {{0}, {0}, {}, {}}); }),
               "contracted along its last axis");
  expect_error(
      run({{"w", w}, {"ids", whole({1}, {1})}}, [](Builder& b, In& in) { return gather(b, in["w"], in["ids"], 1); }),
      "would cut its blocks");
}

TEST(Evaluate, StoredFloatsDecodeTheSame) {
  const std::vector<uint16_t> half{0x3c00, 0xc000, 0x3800, 0x4200, 0, 0x3c00};  // 1 -2 0.5 / 3 0 1
  const TensorView w{DType::f16, {2, 3}, std::as_bytes(std::span(half)), nullptr};
  expect_close(run({{"x", reals({1, 3}, {1, 10, 100})}, {"w", w}},
                   [](Builder& b, In& in) { return linear(b, in["x"], in["w"]); }),
               {1, 2}, {31, 103});
  expect_close(
      run({{"x", reals({1, 2}, {1, 10})}, {"w", w}}, [](Builder& b, In& in) { return matmul(b, in["x"], in["w"]); }),
      {1, 3}, {31, -2, 10.5});
}

// Two layers of y = relu(W y) with a state that counts runs: params come one at a time and go when they are used up.
TEST(Evaluate, StreamsParamsAndReplacesStates) {
  Builder b;
  const Dim t = b.symbol("T", 1, 8);
  Value y = b.input("x", DType::f32, {t, 2});
  for (const char* name : {"w0", "w1", "w2"}) y = relu(b, linear(b, y, b.param(name, DType::f32, {2, 2})));
  b.output("y", y);
  const Value n = b.state("n", DType::i32, {});
  b.update("n", add(b, n, b.constant(DType::i32, 1)));
  auto g = b.finish();
  ASSERT_TRUE(g.ok()) << g.error().message();
  const std::vector<float> w{1, 2, -1, 1};
  std::vector<std::string> log;
  std::set<std::string> alive;
  RefOptions o;
  o.leaf = [&](const Port& p) -> Result<RefLeaf> {
    log.push_back("+" + p.name);
    alive.insert(p.name);
    EXPECT_EQ(alive.size(), 1u);
    return RefLeaf(view(std::span<const float>(w), {2, 2}));
  };
  o.done = [&](const Port& p) {
    log.push_back("-" + p.name);
    alive.erase(p.name);
  };
  int made = 0;
  o.made = [&](Value, const RefTensor&) -> Status { return ++made, ok(); };
  const Leaves leaves{{"x", reals({1, 2}, {1, 3})}, {"n", whole({}, {41})}};
  auto r = evaluate(*g, leaves, *bind_symbols(*g, leaves), o);
  ASSERT_TRUE(r.ok()) << r.error().message();
  // [1, 3] -> [7, 2] -> [11, -5 -> 0] -> [11, -11 -> 0]
  EXPECT_EQ(r->outputs.at("y").f, (std::vector<double>{11, 0}));
  EXPECT_EQ(r->states.at("n").i, (std::vector<int64_t>{42}));
  EXPECT_EQ(log, (std::vector<std::string>{"+w0", "-w0", "+w1", "-w1", "+w2", "-w2"}));
  EXPECT_EQ(made, 8);  // three products, three relus, the constant and the sum
}

TEST(Evaluate, SaysWhatIsWrong) {
  Builder b;
  const Dim t = b.symbol("T", 1, 8, 2);
  const Value x = b.input("x", DType::f32, {t, 2}), y = b.input("y", DType::f32, {t});
  b.output("z", reduce_sum(b, add(b, x, expand_dims(b, y, 1))));
  auto g = b.finish();
  ASSERT_TRUE(g.ok()) << g.error().message();
  const auto fails = [&](Leaves leaves, std::string_view part) {
    auto s = bind_symbols(*g, leaves);
    const Error e = s ? [&] {
      auto r = evaluate(*g, leaves, *s);
      return r ? Error{} : r.error();
    }()
                      : s.error();
    EXPECT_NE(e.message().find(part), std::string::npos) << e.message();
  };
  const RefTensor good = reals({2, 2}, {1, 2, 3, 4}), ones = reals({2}, {1, 1});
  fails({{"x", good}}, "'y' has no value");
  fails({{"x", good}, {"y", reals({4}, {1, 1, 1, 1})}}, "T is 2 by axis 0 of 'x' and 4 by axis 0 of 'y'");
  fails({{"x", reals({3, 2}, {1, 2, 3, 4, 5, 6})}, {"y", ones}}, "in steps of 2");
  fails({{"x", reals({2, 3}, {1, 2, 3, 4, 5, 6})}, {"y", ones}}, "'x' is [2, 3], wants [2, 2]");
  fails({{"x", good}, {"y", ones}, {"k", ones}}, "no leaf 'k'");
  fails({{"x", good}, {"y", whole({2}, {1, 1})}}, "'y' comes in another type than f32[T]");
  fails({{"x", reals({2}, {1, 1})}, {"y", ones}}, "'x' has rank 1, wants 2");
  fails({}, "nothing binds the symbol T");
}

// A layer over symbolic lengths: its decomposition needs no further guards and gives the same at every length.
TEST(Decompose, HoldsForSymbolicLengths) {
  Builder b;
  const Dim t = b.symbol("T", 1, 64), s = b.symbol("S", 64, 128);
  const Value p = b.input("p", DType::i32, {t});
  Value q = rms_norm(b, b.input("q", DType::f32, {t, 4, 8}), {}, 1e-6);
  q = rope(b, q, p, {.pairing = RopeOptions::Pairing::halves, .rotary = 4});
  const Value k = b.input("k", DType::f32, {1, s, 2, 8}), mask = b.input("mask", DType::boolean, {1, 1, t, s});
  const Value y = dense_attention(b, expand_dims(b, q, 0), k, k, {.scale = 0.25, .window = 5}, 2, mask);
  b.output("y", layer_norm(b, cast(b, mean(b, y, {2}), DType::f16), {}, {}, 1e-5));
  auto g = b.finish();
  ASSERT_TRUE(g.ok()) << g.error().message();
  const size_t guards = g->guards.size();
  Graph plain = g->clone();
  EXPECT_GE(decompose_all(plain), 5);
  EXPECT_EQ(plain.guards.size(), guards);
  plain.compact();
  for (uint32_t id : plain.order()) EXPECT_NE(plain.node(id).op->kind, OpKind::composite);
  auto valid = plain.verify();
  ASSERT_TRUE(valid.ok()) << valid.error().message();
  for (int64_t n : {1, 7}) {
    const int64_t m = 64 + n;
    Leaves leaves{{"p", ref_zeros(DType::i32, {n})},
                  {"q", ref_zeros(DType::f32, {n, 4, 8})},
                  {"k", ref_zeros(DType::f32, {1, m, 2, 8})},
                  {"mask", ref_zeros(DType::boolean, {1, 1, n, m})}};
    int64_t seed = 1;
    for (auto& [name, leaf] : leaves) {
      auto& x = std::get<RefTensor>(leaf);
      for (double& v : x.f) v = static_cast<double>((seed = seed * 48271 % 2147483647) % 1000) / 300 - 1.5;
      for (int64_t& v : x.i) v = (seed = seed * 48271 % 2147483647) % (x.dtype == DType::i32 ? 4000 : 2);
    }
    const auto symbols = *bind_symbols(*g, leaves);
    auto want = evaluate(*g, leaves, symbols), got = evaluate(plain, leaves, symbols);
    ASSERT_TRUE(want.ok() && got.ok());
    expect_close(std::move(got->outputs.at("y")), {1, n, 8}, want->outputs.at("y").f,
                 3e-3);  // the decomposition rounds to f16
  }
}

TEST(Evaluate, StateRowsAreRounded) {
  Builder b;
  const Value k = b.state("k", DType::f16, {4, 2});
  const Value next = store_rows(b, k, b.input("at", DType::i32, {1}), b.input("row", DType::f32, {1, 2}));
  b.update("k", next);
  b.output("read", gather(b, next, b.input("ids", DType::i32, {2})));
  auto g = b.finish();
  ASSERT_TRUE(g.ok()) << g.error().message();
  EXPECT_EQ(g->at(next).op->fx.alias_in, 0);
  auto r = evaluate(*g,
                    {{"k", reals({4, 2}, {0, 0, 1, 1, 2, 2, 3, 3}, DType::f16)},
                     {"at", whole({1}, {2})},
                     {"row", reals({1, 2}, {0.1, 1e9})},
                     {"ids", whole({2}, {2, 3})}},
                    {});
  ASSERT_TRUE(r.ok()) << r.error().message();
  EXPECT_EQ(r->outputs.at("read").f, (std::vector<double>{0x1.998p-4, kInf, 3, 3}));
  EXPECT_EQ(r->states.at("k").f[2], 1);
}

}  // namespace
}  // namespace tern
