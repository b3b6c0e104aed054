#include "core/scalar.h"
#include "ops/op_list.h"
#include "ops/sample/philox.h"
#include "run.h"

namespace tern {
namespace {

using In = std::map<std::string, Value>;

// One unary or binary op of the table by its name.
Result<RefTensor> apply(const char* op, Leaves leaves) {
  return run(leaves, [op](Builder& b, In& in) {
    std::vector<Value> operands;
    for (const auto& [name, v] : in) operands.push_back(v);
    return b.op(op, operands);
  });
}

TEST(OpList, HoldsEveryRowAndEveryNameOnce) {
  std::set<std::string_view> names;
  for (const OpDef* op : op_list()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_TRUE(op->infer && op->reference) << op->name;
    EXPECT_EQ(op->kind == OpKind::composite, op->decompose != nullptr) << op->name;
    EXPECT_EQ(find_op(op->name), op);
  }
  for (size_t i = 0; i < scalar_rows().size(); ++i) {
    EXPECT_EQ(kScalarOps[i].name, scalar_rows()[i].name);
    EXPECT_EQ(kScalarOps[i].scalar, static_cast<int16_t>(i));
    EXPECT_EQ(kScalarOps[i].max_in, scalar_rows()[i].arity);
  }
}

TEST(Elementwise, IntegersKeepTheirBits) {
  const int64_t big = (int64_t{1} << 53) + 1;
  expect_whole(apply("mul", {{"a", whole({1}, {big}, DType::i64)}, {"b", whole({1}, {3}, DType::i64)}}), {1},
               {27021597764222979});
  expect_whole(apply("eq", {{"a", whole({2}, {big, big}, DType::i64)}, {"b", whole({2}, {big - 1, big}, DType::i64)}}),
               {2}, {0, 1});
  expect_whole(apply("add", {{"a", whole({2}, {127, -128}, DType::i8)}, {"b", whole({2}, {1, -1}, DType::i8)}}), {2},
               {-128, 127});
  expect_whole(apply("div", {{"a", whole({4}, {-7, 7, 5, INT32_MIN})}, {"b", whole({4}, {2, -2, 0, -1})}}), {4},
               {-3, -3, 0, INT32_MIN});
  expect_whole(apply("rem", {{"a", whole({3}, {-7, 7, 5})}, {"b", whole({3}, {2, -2, 0})}}), {3}, {-1, 1, 5});
}

TEST(Elementwise, U64IsUnsigned) {
  const auto u = [](const std::vector<int64_t>& v) { return whole({static_cast<int64_t>(v.size())}, v, DType::u64); };
  const int64_t top = INT64_MIN;  // 2^63
  expect_whole(apply("lt", {{"a", u({1, top})}, {"b", u({top, 1})}}), {2}, {1, 0});
  expect_whole(apply("ge", {{"a", u({1, top})}, {"b", u({top, 1})}}), {2}, {0, 1});
  expect_whole(apply("max", {{"a", u({1, top})}, {"b", u({top, 1})}}), {2}, {top, top});
  expect_whole(apply("div", {{"a", u({-1})}, {"b", u({2})}}), {1}, {INT64_MAX});
  expect_whole(apply("rem", {{"a", u({-1})}, {"b", u({10})}}), {1}, {5});  // 2^64 - 1 = ...615
  expect_whole(apply("shift_right", {{"a", u({top, top})}, {"b", u({63, 64})}}), {2}, {1, 0});
  expect_whole(apply("clamp", {{"a", u({-1, 0})}, {"b", u({1, 1})}, {"c", u({top, top})}}), {2}, {top, 1});
  expect_close(run({{"x", u({-1})}}, [](Builder& b, In& in) { return cast(b, in["x"], DType::f64); }), {1}, {0x1p64});
}

TEST(Elementwise, ClampIsMinOfMaxAlsoWhereBoundsCross) {
  expect_whole(apply("clamp", {{"a", whole({1}, {0})}, {"b", whole({1}, {5})}, {"c", whole({1}, {3})}}), {1}, {3});
  expect_close(apply("clamp", {{"a", reals({1}, {0})}, {"b", reals({1}, {5})}, {"c", reals({1}, {3})}}), {1}, {3});
}

TEST(Elementwise, NanGoesThrough) {
  const RefTensor x = reals({3}, {kNan, -1, 2}), z = reals({3}, {0, kNan, 1});
  expect_close(apply("relu", {{"x", x}}), {3}, {kNan, 0, 2});
  expect_close(apply("max", {{"a", x}, {"b", z}}), {3}, {kNan, kNan, 2});
  expect_close(apply("min", {{"a", x}, {"b", z}}), {3}, {kNan, kNan, 1});
  expect_close(apply("sign", {{"x", x}}), {3}, {kNan, -1, 1});
  expect_whole(apply("ne", {{"a", x}, {"b", x}}), {3}, {1, 0, 0});
  expect_whole(apply("isfinite", {{"x", reals({3}, {kInf, kNan, 0})}}), {3}, {0, 0, 1});
}

TEST(Elementwise, Casts) {
  const auto to = [](RefTensor x, DType t) {
    return run({{"x", std::move(x)}}, [t](Builder& b, In& in) { return cast(b, in["x"], t); });
  };
  expect_whole(to(reals({6}, {-1.9, 300, -200, kNan, kInf, 0.5}, DType::f64), DType::i8), {6},
               {-1, 127, -128, 0, 127, 0});
  expect_whole(to(reals({4}, {-3, 1e30, 0x1p63, kNan}), DType::u64), {4}, {0, -1, INT64_MIN, 0});
  expect_whole(to(reals({3}, {-1e30, 1e30, 3e9}), DType::i64), {3}, {INT64_MIN, INT64_MAX, 3000000000});
  expect_whole(to(reals({4}, {0, -0.0, 0.25, kNan}), DType::boolean), {4}, {0, 0, 1, 1});
  expect_whole(to(whole({3}, {300, -1, 128}), DType::i8), {3}, {44, -1, -128});
  expect_close(to(reals({4}, {65519.99, 65520, 1e-9, 0x1p-24}), DType::f16), {4}, {65504, kInf, 0, 0x1p-24});
  expect_close(to(whole({1}, {16777217}), DType::f32), {1}, {16777216}, 0);
  expect_close(to(reals({1}, {0.1}), DType::f64), {1}, {0.1}, 0);  // widening keeps what f64 evaluation has
  expect_close(to(reals({1}, {0.1}, DType::f64), DType::f32), {1}, {0.1f}, 0);     // narrowing rounds
  expect_close(to(reals({1}, {70000}, DType::bf16), DType::f16), {1}, {kInf}, 0);  // more digits, but a smaller range
  expect_close(to(whole({2}, {1, 2}), DType::c64), {2}, {1, 0, 2, 0});
  expect_close(run({{"c", whole({2}, {1, 0}, DType::boolean)}, {"x", RefTensor{DType::c64, {2}, {1, 2, 3, 4}, {}}}},
                   [](Builder& b, In& in) {
                     return select(b, in["c"], in["x"], b.op("reverse", {in["x"]}, {std::vector<int64_t>{0}}));
                   }),
               {2}, {1, 2, 1, 2});
}

TEST(Elementwise, Broadcasting) {
  expect_close(run({{"x", reals({2, 1}, {1, 2})}, {"y", reals({3}, {10, 20, 30})}},
                   [](Builder& b, In& in) { return add(b, in["x"], in["y"]); }),
               {2, 3}, {11, 21, 31, 12, 22, 32});
  expect_close(run({{"x", reals({2}, {1, 2})}}, [](Builder& b, In& in) { return mul(b, in["x"], 2.5); }), {2},
               {2.5, 5});
  // A core op spreads scalars and nothing else.
  expect_error(apply("add", {{"x", reals({2, 1}, {1, 2})}, {"y", reals({2, 3}, {1, 2, 3, 4, 5, 6})}}),
               "axis 1: 1 is not 3");
  expect_error(run({{"x", reals({2}, {1, 2})}, {"y", reals({3}, {1, 2, 3})}},
                   [](Builder& b, In& in) { return add(b, in["x"], in["y"]); }),
               "[2] and [3] do not go together");
}

TEST(Elementwise, TypesAreNamed) {
  expect_error(apply("add", {{"x", reals({1}, {1})}, {"y", whole({1}, {1})}}), "add(f32, i32): wants equal types");
  expect_error(apply("exp", {{"x", whole({1}, {1})}}), "exp(i32): wants floats");
  expect_error(run({{"x", RefTensor{DType::c64, {}, {1, 2}, {}}}},
                   [](Builder& b, In& in) { return cast(b, in["x"], DType::f32); }),
               "c64 has no value as f32");
}

// Known answers of the Random123 distribution (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  using A = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (A{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (A{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (A{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
}  // namespace tern
