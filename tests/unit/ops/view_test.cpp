// Views as index maps, also with symbolic extents: reading the stored value through the map gives what the op gives.
#include "graph/text/text.h"
#include "ops/op_list.h"
#include "run.h"

namespace tern {
namespace {

// The map of a chain of views from the input "x" to v; a refusal's reason otherwise.
OrRefuse<IndexMap> map_of(const Graph& g, Value v) {
  const Node& n = g.at(v);
  if (n.op == &kInputOp) {
    IndexMap m{0, std::vector<Dim>(n.out[0].shape.size())};
    Dim step = 1;
    for (size_t i = m.stride.size(); i-- > 0; step = g.dims->mul(step, n.out[0].shape[i])) m.stride[i] = step;
    return m;
  }
  TERN_ACCEPT(const IndexMap inner, map_of(g, n.in[0]));
  return n.op->view(*g.dims, n, g.type(n.in[0]), inner);
}

// Evaluates the chain and compares element by element with the input read through the map.
void check(Builder& b, Value y, std::vector<int64_t> symbols, std::vector<int64_t> in_shape,
           std::vector<int64_t> out_shape) {
  b.output("y", y);
  auto g = b.finish();
  ASSERT_TRUE(g.ok()) << g.error().message();
  const Value v = g->outputs()[0].value;
  auto map = map_of(*g, v);
  ASSERT_TRUE(map.ok()) << map.why();
  RefTensor x = ref_zeros(DType::i64, in_shape);
  for (size_t i = 0; i < x.i.size(); ++i) x.i[i] = static_cast<int64_t>(i);
  auto r = evaluate(*g, {{"x", x}}, symbols);
  ASSERT_TRUE(r.ok()) << r.error().message();
  const RefTensor& got = r->outputs.at("y");
  EXPECT_EQ(got.shape, out_shape);
  for (int64_t n = 0; n < got.size(); ++n) {
    int64_t rest = n, at = *g->dims->eval(map->offset, symbols);
    for (size_t a = out_shape.size(); a-- > 0; rest /= out_shape[a])
      at += rest % out_shape[a] * *g->dims->eval(map->stride[a], symbols);
    EXPECT_EQ(got.i[static_cast<size_t>(n)], at);
  }
}

TEST(Views, ChainsCompose) {
  Builder b;
  const Dim t = b.symbol("T", 1, 64);
  Value x = b.input("x", DType::i64, {t, 24});
  x = transpose(b, reshape(b, x, {t, 2, 3, 4}), {1, 0, 2, 3});
  x = slice(b, x, 3, 3, kToEnd, -2);
  x = reverse(b, x, {0, 1});
  x = broadcast(b, x, {5, 2, t, 3, 2}, {1, 2, 3, 4});
  check(b, x, {7}, {7, 24}, {5, 2, 7, 3, 2});
}

TEST(Views, ReshapeSplitsAndMergesWhatLiesTogether) {
  Builder b;
  const Dim t = b.symbol("T", 1, 64);
  Value x = b.input("x", DType::i64, {t, 4, 6});
  x = slice(b, x, 1, 1, 3);                       // rows of T are 24 apart, [2, 6] inside are dense
  x = reshape(b, x, {1, t, 3, 2, 2});             // 12 = 3 * 2 * 2 within
  x = reshape(b, x, {b.dims().mul(t, 1), 6, 2});  // ones vanish, 3 and 2 merge
  check(b, x, {5}, {5, 4, 6}, {5, 6, 2});
}

TEST(Views, ReshapeRefusesWhatStridesCannotSay) {
  Builder b;
  const Dim t = b.symbol("T", 1, 64);
  Value x = transpose(b, b.input("x", DType::i64, {t, 6}), {1, 0});
  b.output("y", reshape(b, x, {b.dims().mul(t, 6)}));
  auto g = b.finish();
  ASSERT_TRUE(g.ok());
  auto map = map_of(*g, g->outputs()[0].value);
  ASSERT_FALSE(map.ok());
  EXPECT_NE(map.why().find("[6, T]"), std::string::npos) << map.why();
  EXPECT_NE(map.why().find("axes 0 and 1"), std::string::npos) << map.why();
}

TEST(Views, SymbolicSlices) {
  Builder b;
  const Dim t = b.symbol("T", 4, 64);
  Value x = b.input("x", DType::i64, {t, 3});
  x = slice(b, x, 0, -4, kToEnd, 2);  // T - 4, T - 2
  check(b, slice(b, x, 1, kToEnd, kToEnd, -1), {9}, {9, 3}, {2, 3});
}

TEST(Guards, AreLeftWhereNothingIsProved) {
  Builder b;
  const Dim t = b.symbol("T", 0, 64), u = b.symbol("U", 0, 64);
  const Value x = b.input("x", DType::f32, {t}), y = b.input("y", DType::f32, {u});
  b.output("sum", add(b, x, y));               // T == U
  b.output("cut", slice(b, x, 0, 1, Dim(u)));  // 1 <= U, U <= T
  auto g = b.finish();
  ASSERT_TRUE(g.ok()) << g.error().message();
  EXPECT_GE(g->guards.size(), 2u);
  const Leaves good{{"x", reals({3}, {1, 2, 3})}, {"y", reals({3}, {4, 5, 6})}};
  auto r = evaluate(*g, good, *bind_symbols(*g, good));
  ASSERT_TRUE(r.ok()) << r.error().message();
  EXPECT_EQ(r->outputs.at("cut").f, (std::vector<double>{2, 3}));
  const Leaves bad{{"x", reals({3}, {1, 2, 3})}, {"y", reals({1}, {4})}};  // 1 is no licence to repeat
  r = evaluate(*g, bad, *bind_symbols(*g, bad));
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().message().find("T = 3 by input 'x' axis 0"), std::string::npos) << r.error().message();
}

TEST(Guards, ASymbolIsNoBroadcastOne) {
  Builder b;
  const Dim t = b.symbol("T", 1, 1 << 20);
  const Value y = add(b, b.input("x", DType::f32, {t, 4}), b.input("y", DType::f32, {8, 1}));
  EXPECT_EQ(b.dim(y, 0), Dim(8));  // T must be 8, and the graph says so
  ASSERT_EQ(b.graph().guards.size(), 1u);
  b.op("broadcast", {b.input("z", DType::f32, {t})}, {Shape{1}, std::vector<int64_t>{0}});
  ASSERT_TRUE(b.failed());
  EXPECT_NE(b.error()->message().find("T"), std::string::npos);
}

TEST(Shapes, MinusOneAndErrors) {
  Builder b;
  const Dim t = b.symbol("T", 1, 64);
  const Value x = b.input("x", DType::f32, {t, 6});
  EXPECT_EQ(b.dim(reshape(b, x, {-1, 2}), 0), b.dims().mul(t, 3));
  EXPECT_EQ(b.dim(reshape(b, x, {t, -1, 3}), 1), Dim(2));
  EXPECT_FALSE(b.failed());
  const auto fails = [&](const char* part, auto make) {
    Builder c;
    const Value v = c.input("x", DType::f32, {4, 6});
    make(c, v);
    ASSERT_TRUE(c.failed()) << part;
    EXPECT_NE(c.error()->message().find(part), std::string::npos) << c.error()->message();
  };
  fails("two extents are -1", [](Builder& c, Value v) { reshape(c, v, {-1, -1}); });
  fails("24 is not 25", [](Builder& c, Value v) { reshape(c, v, {5, 5}); });
  fails("axis 2 is outside of rank 2", [](Builder& c, Value v) { slice(c, v, 2, 0, 1); });
  fails("named twice", [](Builder& c, Value v) { c.op("transpose", {v}, {std::vector<int64_t>{0, 0}}); });
  fails("counts axes from the front", [](Builder& c, Value v) { c.op("softmax", {v}, {int64_t{-1}}); });
  fails("limit up to the extent: 9 is more than 6",
        [](Builder& c, Value v) { c.op("slice", {v}, {Shape{0, 0}, Shape{4, 9}, std::vector<int64_t>{1, 1}}); });
  fails("step 0",
        [](Builder& c, Value v) { c.op("slice", {v}, {Shape{0, 0}, Shape{4, 6}, std::vector<int64_t>{1, 0}}); });
  fails("what is left after cutting", [](Builder& c, Value v) { pad(c, v, {-3, 0}, {-2, 0}); });
  fails("no kind 'median'",
        [](Builder& c, Value v) { c.op("reduce", {v}, {std::string("median"), std::vector<int64_t>{0}}); });
  fails("any wants bool", [](Builder& c, Value v) { reduce_any(c, v); });
  fails("elements along axis 0", [](Builder& c, Value v) { argmax(c, slice(c, v, 0, 0, 0), 0); });
  fails("contracted axis: 6 is not 4", [](Builder& c, Value v) { dot_general(c, v, v, {{1}, {0}, {}, {}}); });
  fails("wants x [.., K] and a weight [N, K]", [](Builder& c, Value v) { linear(c, v, reshape(c, v, {24})); });
  fails("rotary is 5", [](Builder& c, Value v) { rope(c, reshape(c, v, {4, 1, 6}), iota(c, {4}, 0), {.rotary = 5}); });
  fails("positions and tokens: 3 is not 4",
        [](Builder& c, Value v) { rope(c, reshape(c, v, {4, 1, 6}), iota(c, {3}, 0), {}); });
  fails("weight and last axis", [](Builder& c, Value v) { rms_norm(c, v, c.input("w", DType::f32, {5}), 1e-5); });
  fails("eps is", [](Builder& c, Value v) { rms_norm(c, v, {}, -1); });
  fails("4 query heads are no multiple of 3 key heads", [](Builder& c, Value) {
    const Value k = c.input("k", DType::f32, {1, 5, 3, 2});
    dense_attention(c, c.input("q", DType::f32, {1, 5, 4, 2}), k, k, {});
  });
  fails("columns of settings: 7 is not 8", [](Builder& c, Value) {
    sample(c, c.input("l", DType::f32, {2, 9}), c.input("s", DType::f32, {2, 7}), c.input("h", DType::i32, {2, 0}),
           c.input("r", DType::u32, {2, 4}));
  });
}

}  // namespace
}  // namespace tern
