#include "core/scalar.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tern {
namespace {

double f(ScalarOp op, double a, double b = 0, double c = 0) { return scalar_row(op).f64(a, b, c); }
int64_t i(ScalarOp op, int64_t a, int64_t b = 0, int64_t c = 0) { return scalar_row(op).i64(a, b, c); }

TEST(Scalar, RowsAreInEnumOrder) {
  EXPECT_EQ(scalar_rows().size(), static_cast<size_t>(ScalarOp::count_));
  EXPECT_EQ(scalar_row(ScalarOp::add).name, "add");
  EXPECT_EQ(scalar_row(ScalarOp::select).name, "select");
  EXPECT_EQ(scalar_row(ScalarOp::select).arity, 3);
  EXPECT_EQ(scalar_row(ScalarOp::cast).name, "cast");
}

TEST(Scalar, Floats) {
  EXPECT_EQ(f(ScalarOp::div, 1, 4), 0.25);
  EXPECT_EQ(f(ScalarOp::rem, -7, 3), -1);
  EXPECT_TRUE(std::isnan(f(ScalarOp::max, NAN, 1)) && std::isnan(f(ScalarOp::min, 1, NAN)));
  EXPECT_EQ(f(ScalarOp::round, 2.5), 2);
  EXPECT_EQ(f(ScalarOp::sign, -0.5), -1);
  EXPECT_NEAR(f(ScalarOp::softplus, 800), 800, 0);
  EXPECT_NEAR(f(ScalarOp::softplus, 0), 0.6931471805599453, 1e-16);
  EXPECT_NEAR(f(ScalarOp::softplus, -40), 4.248354255291589e-18, 1e-32);
  EXPECT_NEAR(f(ScalarOp::gelu_erf, 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(f(ScalarOp::gelu_tanh, 1), 0.8411919906082768, 1e-12);
  EXPECT_NEAR(f(ScalarOp::silu, 1), 0.7310585786300049, 1e-15);
  EXPECT_EQ(f(ScalarOp::clamp, 5, 0, 3), 3);
  EXPECT_EQ(f(ScalarOp::lt, 1, 2), 1);
  EXPECT_EQ(f(ScalarOp::select, 0, 7, 9), 9);
  EXPECT_TRUE(std::isnan(f(ScalarOp::relu, NAN)));
}

TEST(Scalar, IntegersNeverTrap) {
  EXPECT_EQ(i(ScalarOp::add, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(i(ScalarOp::mul, INT64_MAX, 2), -2);
  EXPECT_EQ(i(ScalarOp::neg, INT64_MIN), INT64_MIN);
  EXPECT_EQ(i(ScalarOp::div, -7, 2), -3);
  EXPECT_EQ(i(ScalarOp::rem, -7, 2), -1);
  EXPECT_EQ(i(ScalarOp::div, 7, 0), 0);
  EXPECT_EQ(i(ScalarOp::rem, 7, 0), 7);
  EXPECT_EQ(i(ScalarOp::div, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(i(ScalarOp::rem, INT64_MIN, -1), 0);
  EXPECT_EQ(i(ScalarOp::shift_left, 1, 64), 0);
  EXPECT_EQ(i(ScalarOp::shift_left, 1, 62), int64_t{1} << 62);
  EXPECT_EQ(i(ScalarOp::shift_right, -8, 1), -4);
  EXPECT_EQ(i(ScalarOp::shift_right, -8, 99), -1);
  EXPECT_EQ(i(ScalarOp::clamp, 5, 0, 3), 3);
  EXPECT_EQ(scalar_row(ScalarOp::exp).i64, nullptr);
  EXPECT_EQ(scalar_row(ScalarOp::bit_and).f64, nullptr);
}

TEST(Scalar, TypeRules) {
  auto type = [](ScalarOp op, std::vector<DType> in, DType to = DType::f32) { return scalar_type(op, in, to); };
  EXPECT_EQ(*type(ScalarOp::add, {DType::i32, DType::i32}), DType::i32);
  EXPECT_EQ(*type(ScalarOp::lt, {DType::f16, DType::f16}), DType::boolean);
  EXPECT_EQ(*type(ScalarOp::select, {DType::boolean, DType::f32, DType::f32}), DType::f32);
  EXPECT_EQ(*type(ScalarOp::cast, {DType::i8}, DType::f64), DType::f64);
  EXPECT_EQ(*type(ScalarOp::bit_and, {DType::boolean, DType::boolean}), DType::boolean);
  EXPECT_EQ(*type(ScalarOp::isnan, {DType::bf16}), DType::boolean);
  EXPECT_EQ(type(ScalarOp::add, {DType::i32, DType::f32}).error().text, "add(i32, f32): wants equal types");
  EXPECT_EQ(type(ScalarOp::exp, {DType::i32}).error().text, "exp(i32): wants floats");
  EXPECT_FALSE(type(ScalarOp::add, {DType::f32}).ok());
  EXPECT_FALSE(type(ScalarOp::add, {DType::boolean, DType::boolean}).ok());
  EXPECT_FALSE(type(ScalarOp::select, {DType::f32, DType::f32, DType::f32}).ok());
  EXPECT_FALSE(type(ScalarOp::logical_not, {DType::i32}).ok());
  EXPECT_FALSE(type(ScalarOp::bit_or, {DType::f32, DType::f32}).ok());
}

}  // namespace
}  // namespace tern
