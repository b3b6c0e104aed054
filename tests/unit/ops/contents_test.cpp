// Symbolic contents: shape arithmetic as dims, against the reference evaluation of the same nodes at many sizes.
#include "graph/sizes/contents.h"

#include <random>

#include "run.h"

namespace tern {
namespace {

Const list(DType dtype, const std::vector<int64_t>& values, std::vector<int64_t> shape) {
  RefTensor t = ref_zeros(dtype, std::move(shape));
  t.i = values;
  return const_from(t);
}
Const list(const std::vector<int64_t>& values) {
  return list(DType::i64, values, {static_cast<int64_t>(values.size())});
}

struct Sizes : testing::Test {
  Builder b;
  Dim B = b.symbol("B", 0, 64), T = b.symbol("T", 1, 512);
  Value x = b.input("x", DType::f32, {B, T, 8});
  std::string text(Value v) {
    const Shape s = sizes(b, v);
    if (b.failed()) return b.error()->message();
    std::string out;
    for (const Dim d : s) out += (out.empty() ? "" : ", ") + b.dims().text(d);
    return out;
  }
  Value at(Value v, int64_t i) { return gather(b, v, b.constant(list(DType::i64, {i}, {}))); }
  Value numbers(const std::vector<int64_t>& v) { return b.constant(list(v)); }
};

TEST_F(Sizes, EveryOpOfShapeArithmetic) {
  const Value s = shape_of(b, x);
  const Value batch = at(s, 0), tokens = at(s, 1);
  EXPECT_EQ(text(s), "B, T, 8");
  EXPECT_EQ(text(size_of(b, x)), "8*B*T");
  EXPECT_EQ(text(batch), "B");
  EXPECT_EQ(text(at(s, 3)), "0");  // outside, as gather reads
  EXPECT_EQ(text(gather(b, s, numbers({2, 0}))), "8, B");
  EXPECT_EQ(text(concat(b, {expand_dims(b, batch, 0), numbers({-1})}, 0)), "B, -1");
  EXPECT_EQ(text(slice(b, s, 0, 1, kToEnd)), "T, 8");
  EXPECT_EQ(text(slice(b, s, 0, kToEnd, kToEnd, -1)), "8, T, B");
  EXPECT_EQ(text(reverse(b, s, {0})), "8, T, B");
  EXPECT_EQ(text(transpose(b, reshape(b, concat(b, {s, s}, 0), {2, 3}), {1, 0})), "B, B, T, T, 8, 8");
  EXPECT_EQ(text(broadcast_to(b, tokens, {3})), "T, T, T");
  EXPECT_EQ(text(pad(b, s, {1}, {0}, tokens)), "T, B, T, 8");
  EXPECT_EQ(text(cast(b, s, DType::i32)), "B, T, 8");
  EXPECT_EQ(text(cast(b, tokens, DType::boolean)), "1");
  EXPECT_EQ(text(add(b, s, numbers({1, 2, 3}))), "B + 1, T + 2, 11");
  EXPECT_EQ(text(sub(b, tokens, 1)), "T - 1");
  EXPECT_EQ(text(mul(b, batch, tokens)), "B*T");
  EXPECT_EQ(text(div(b, tokens, 2)), "floordiv(T, 2)");
  EXPECT_EQ(text(div(b, neg(b, tokens), 2)), "-floordiv(T, 2)");  // towards zero
  EXPECT_EQ(text(div(b, mul(b, tokens, batch), tokens)), "B");
  EXPECT_EQ(text(rem(b, mul(b, tokens, 6), b.constant(DType::i64, 3))), "0");
  EXPECT_EQ(text(min(b, tokens, 600)), "T");
  EXPECT_EQ(text(max(b, tokens, batch)), "max(B, T)");
  EXPECT_EQ(text(abs(b, neg(b, tokens))), "T");
  EXPECT_EQ(text(sign(b, tokens)), "1");
  EXPECT_EQ(text(relu(b, sub(b, tokens, 513))), "0");
  EXPECT_EQ(text(less(b, tokens, b.constant(DType::i64, 513))), "1");
  EXPECT_EQ(text(equal(b, s, numbers({-1, -1, -1}))), "0, 0, 0");
  EXPECT_EQ(text(select(b, equal(b, s, numbers({-1, -1, 8})), numbers({1, 1, 1}), s)), "B, T, 1");
  EXPECT_EQ(text(reduce_prod(b, s)), "8*B*T");
  EXPECT_EQ(text(reduce_sum(b, s)), "B + T + 8");
  EXPECT_EQ(text(reduce_max(b, reshape(b, concat(b, {s, s}, 0), {2, 3}), {0})), "B, T, 8");
  EXPECT_EQ(text(reduce_min(b, slice(b, s, 0, 1, 2), {0})), "T");
  EXPECT_EQ(text(add(b, iota(b, {3}, 0, DType::i64), tokens)), "T, T + 1, T + 2");
  EXPECT_FALSE(b.failed());
}

TEST_F(Sizes, WhatIsNotKnownSaysWhyAndWhere) {
  const auto why = [&](const std::function<Value(Builder&)>& make) {
    Builder one;
    const Dim t = one.symbol("T", 0, 100);
    one.input("x", DType::f32, {t, 8});
    one.scope("blk.1");
    sizes(one, make(one), "reshape");
    return one.failed() ? one.error()->message() : "known";
  };
  EXPECT_EQ(why([](Builder& g) { return add(g, g.input("n", DType::i64, {2}), 1); }),
            "reshape: the sizes in i64[2] are not known while the graph is built: input 'n' is known only at run time; "
            "make them of shapes and constants, or make each a symbol that an input's shape or the caller binds, or a "
            "late_size "
            "(node 3 (add) at blk.1)");
  const auto has = [&](const std::function<Value(Builder&)>& make, std::string_view part) {
    const std::string text = why(make);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const auto t = [](Builder& g) { return g.dims().parse("T").ok() ? *g.dims().parse("T") : Dim(0); };
  has([](Builder& g) { return g.param("p", DType::i64, {1}); }, "param 'p' is known only at run time");
  has([&](Builder& g) { return iota(g, {t(g)}, 0, DType::i64); }, "whose own extents are not constant");
  has([](Builder& g) { return iota(g, {65}, 0, DType::i64); }, "i64[65], more than 64 elements");
  has([&](Builder& g) { return cast(g, dim_value(g, t(g), DType::f32), DType::i64); }, "f32[], no integers");
  has([&](Builder& g) { return cast(g, mul(g, dim_value(g, t(g)), 1e9), DType::i32); }, "may not fit i32");
  has([&](Builder& g) { return div(g, sub(g, dim_value(g, t(g)), 3), 2); }, "signs that depend on the sizes");
  has([&](Builder& g) { return div(g, g.constant(DType::i64, 7), dim_value(g, t(g))); }, "signs that depend");
  has([&](Builder& g) { return less(g, dim_value(g, t(g)), g.constant(DType::i64, 5)); },
      "T < 5 holds for some sizes and not for others");
  has([&](Builder& g) { return gather(g, g.constant(list({1, 2})), dim_value(g, t(g))); },
      "chooses by a symbolic number");
  has([&](Builder& g) { return shift_left(g, dim_value(g, t(g)), g.constant(DType::i64, 1)); }, "no size");
  has([&](Builder& g) { return pad(g, g.constant(list({1})), {t(g)}, {g.dims().mul(t(g), -1)}); },
      "attributes are symbolic");
}

// A chain of random integer ops over sizes: where its contents are known, they are what the reference computes.
TEST(SizesProperty, ContentsAreWhatTheReferenceComputes) {
  std::mt19937 rng(5);
  const auto below = [&](int n) { return static_cast<int>(rng() % static_cast<unsigned>(n)); };
  int known = 0, nodes = 0;
  for (int round = 0; round < 40; ++round) {
    Builder b;
    const Dim p = b.symbol("P", 0, 9), q = b.symbol("Q", 1, 300), r = b.symbol("R", 4, 64, 4);
    const Value x = b.input("x", DType::f32, {p, q, r});
    std::vector<Value> pool = {shape_of(b, x), b.constant(list({3, -2, 5})), iota(b, {3}, 0, DType::i64)};
    for (int i = 0; i < 14; ++i) {
      const Value u = pool[static_cast<size_t>(below(static_cast<int>(pool.size())))],
                  v = pool[static_cast<size_t>(below(static_cast<int>(pool.size())))];
      const Value c = b.constant(list({below(7) - 2, below(7) - 2, below(7) + 1}));
      Value made;
      switch (below(17)) {
        case 0: made = add(b, u, v); break;
        case 1: made = sub(b, u, v); break;
        case 2: made = mul(b, u, c); break;
        case 3: made = div(b, u, c); break;
        case 4: made = rem(b, u, v); break;
        case 5: made = min(b, u, v); break;
        case 6: made = max(b, u, c); break;
        case 7: made = neg(b, u); break;
        case 8: made = abs(b, u); break;
        case 9: made = sign(b, u); break;
        case 10: made = select(b, less(b, u, v), u, c); break;
        case 11: made = gather(b, u, b.constant(list({below(4) - 1, below(4), 1}))); break;
        case 12: made = reverse(b, u, {0}); break;
        case 13: made = slice(b, concat(b, {u, v}, 0), 0, 1 + below(2), 4 + below(2)); break;
        case 14: made = cast(b, cast(b, u, below(2) ? DType::i32 : DType::u8), DType::i64); break;
        case 15: made = broadcast_to(b, reduce_sum(b, u), {3}); break;
        default: made = clamp(b, u, b.constant(DType::i64, -3), b.constant(DType::i64, 40)); break;
      }
      const Shape& s = b.type(made).shape;
      pool.push_back(s == Shape{3} ? made : gather(b, made, iota(b, {3}, 0)));
    }
    ASSERT_FALSE(b.failed()) << b.error()->message();
    std::vector<Shape> contents;
    ContentsOf of(b.graph());
    for (size_t i = 0; i < pool.size(); ++i) {
      const auto& c = of.of(pool[i]);
      ++nodes;
      if (!c) continue;
      ++known;
      b.output("y" + std::to_string(contents.size()), pool[i]);
      contents.push_back(*c);
    }
    const auto g = b.finish();
    ASSERT_TRUE(g.ok()) << g.error().message();
    for (const std::vector<int64_t>& at : {std::vector<int64_t>{0, 1, 4}, {9, 300, 64}, {1, 1, 8}, {3, 77, 20}}) {
      const RefTensor in = ref_zeros(DType::f32, at);
      const auto symbols = bind_symbols(*g, {{"x", in}});
      ASSERT_TRUE(symbols.ok()) << symbols.error().message();
      const auto got = evaluate(*g, {{"x", in}}, *symbols);
      ASSERT_TRUE(got.ok()) << got.error().message();
      for (size_t i = 0; i < contents.size(); ++i) {
        std::vector<int64_t> want;
        for (const Dim d : contents[i]) want.push_back(*g->dims->eval(d, *symbols));
        EXPECT_EQ(got->outputs.at("y" + std::to_string(i)).i, want) << "round " << round << " value " << i;
      }
    }
  }
  EXPECT_GT(known, nodes / 2);  // else this says little
}

}  // namespace
}  // namespace tern
