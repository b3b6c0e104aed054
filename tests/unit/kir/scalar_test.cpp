// Every row of the scalar table: the kir column against the f64 and integer columns.
#include "kir/scalar.h"

#include <cmath>
#include <limits>

#include "kir_test.h"

namespace tern::kir {
namespace {

const std::vector<double> kFloats = {0,  -0.0, 1,   -1,   0.5,  -0.5, 2.5,  -2.5, 3.75,  -7.25,    0.1,       -1e-3,
                                     20, -20,  1e5, -1e5, 88.5, 1e30, -100, 100,  1e-30, INFINITY, -INFINITY, NAN};

std::vector<double> float_results(ScalarOp op, DType dtype, const std::vector<double>& a, const std::vector<double>& b,
                                  const std::vector<double>& c, bool* built) {
  const ScalarRow& row = scalar_row(op);
  const Type t = dtype == DType::f64 ? f64 : f32;
  B k("row", 1, test_caps());
  Buffer x = buffer("x", f64), y = buffer("y", f64), z = buffer("z", f64), out = buffer("out", f64, Access::write);
  V i = group();
  std::vector<V> in = {cast(t, x[i]), cast(t, y[i]), cast(t, z[i])};
  in.resize(row.arity);
  out.store(i, cast(f64, scalar(k, op, dtype, in)));
  auto kernel = k.finish();
  EXPECT_OK(kernel);
  *built = kernel.ok();
  std::vector<double> r(a.size()), aa = a, bb = b, cc = c;
  if (kernel)
    EXPECT_OK(run_kernel(*kernel, {bytes_of(aa), bytes_of(bb), bytes_of(cc), bytes_of(r)}, {},
                         static_cast<uint32_t>(a.size())));
  return r;
}

TEST(Scalar, FloatRowsFollowTheF64Column) {
  std::vector<double> a, b, c;
  for (double x : kFloats) {
    for (double y : kFloats) a.push_back(x), b.push_back(y), c.push_back(x == 2.5 ? -0.75 : 1.5);
  }
  int rows = 0;
  for (size_t o = 0; o < scalar_rows().size(); ++o) {
    const ScalarRow& row = scalar_rows()[o];
    const auto op = static_cast<ScalarOp>(o);
    if (row.f64 == nullptr || row.rule == ScalarRule::select || row.rule == ScalarRule::cast) continue;
    ++rows;
    for (DType dtype : {DType::f32, DType::f64, DType::f16}) {
      bool built = false;
      const auto got = float_results(op, dtype, a, b, c, &built);
      ASSERT_TRUE(built) << row.name;
      for (size_t i = 0; i < a.size(); ++i) {
        const bool wide = dtype == DType::f64;
        const auto as = [&](double v) { return wide ? v : static_cast<double>(static_cast<float>(v)); };
        const double want = row.f64(as(a[i]), as(b[i]), as(c[i]));
        const double limit = wide ? 1.7e308 : 3.4e38, low = wide ? 1e-300 : 1e-37;
        const std::string what = std::string(row.name) + " " + std::string(dtype_name(dtype)) + "(" +
                                 std::to_string(a[i]) + ", " + std::to_string(b[i]) + ", " + std::to_string(c[i]) +
                                 ") = " + std::to_string(got[i]) + ", want " + std::to_string(want);
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(got[i])) << what;
        } else if (std::fabs(want) > limit) {
          EXPECT_TRUE(std::isinf(got[i]) && (got[i] > 0) == (want > 0)) << what;
        } else {
          // The tails of the gelus are differences of numbers near 1, in the column too.
          const bool tail = row.name.starts_with("gelu");
          EXPECT_NEAR(got[i], want, std::fabs(tail ? a[i] : want) * (wide ? 1e-14 : 1e-6) + low) << what;
        }
      }
    }
  }
  EXPECT_GT(rows, 35);
}

struct IntType {
  DType dtype;
  int bits;
  bool is_signed;
};
const IntType kInts[] = {{DType::i8, 8, true},    {DType::u8, 8, false},  {DType::i16, 16, true},
                         {DType::u16, 16, false}, {DType::i32, 32, true}, {DType::u32, 32, false},
                         {DType::i64, 64, true}};

int64_t wrapped(int64_t v, const IntType& t) {
  if (t.bits == 64) return v;
  const int64_t low = v & ((int64_t{1} << t.bits) - 1);
  return t.is_signed && (low >> (t.bits - 1)) ? low - (int64_t{1} << t.bits) : low;
}

TEST(Scalar, IntegerRowsFollowTheI64Column) {
  for (const IntType& t : kInts) {
    const int64_t low = t.bits == 64  ? std::numeric_limits<int64_t>::min()
                        : t.is_signed ? -(int64_t{1} << (t.bits - 1))
                                      : 0;
    const int64_t high = t.bits == 64  ? std::numeric_limits<int64_t>::max()
                         : t.is_signed ? (int64_t{1} << (t.bits - 1)) - 1
                                       : (int64_t{1} << t.bits) - 1;
    std::vector<int64_t> values = {0, 1, 2, 3, 7, 31, 40, 100, low, high, high - 1, low + 1};
    if (t.is_signed) values.insert(values.end(), {-1, -2, -7, -100});
    std::vector<int64_t> a, b, c;
    for (int64_t x : values) {
      for (int64_t y : values) a.push_back(x), b.push_back(y), c.push_back(x > 5 ? 5 : 50);
    }
    for (size_t o = 0; o < scalar_rows().size(); ++o) {
      const ScalarRow& row = scalar_rows()[o];
      if (row.i64 == nullptr ||
          (row.rule != ScalarRule::same_number && row.rule != ScalarRule::same_int && row.rule != ScalarRule::compare))
        continue;
      const Type type = *value_type(t.dtype);
      B k("row", 1, test_caps());
      k.node_budget(1000);
      Buffer x = buffer("x", i64), y = buffer("y", i64), z = buffer("z", i64), out = buffer("out", i64, Access::write);
      V i = group();
      std::vector<V> in = {cast(type, x[i]), cast(type, y[i]), cast(type, z[i])};
      in.resize(row.arity);
      out.store(i, cast(i64, scalar(k, static_cast<ScalarOp>(o), t.dtype, in)));
      auto kernel = k.finish();
      ASSERT_OK(kernel);
      std::vector<int64_t> got(a.size());
      ASSERT_OK(run_kernel(*kernel, {bytes_of(a), bytes_of(b), bytes_of(c), bytes_of(got)}, {},
                           static_cast<uint32_t>(a.size())));
      for (size_t n = 0; n < a.size(); ++n) {
        const int64_t value = row.i64(a[n], b[n], c[n]);
        EXPECT_EQ(got[n], row.rule == ScalarRule::compare ? value : wrapped(value, t))
            << row.name << " " << dtype_name(t.dtype) << "(" << a[n] << ", " << b[n] << ", " << c[n] << ")";
      }
    }
  }
}

template <class From>
std::vector<double> casts(Type from, DType to, std::vector<From> v) {
  B k("cast", 1, test_caps());
  Buffer x = buffer("x", from), out = buffer("out", f64, Access::write);
  const V in[] = {x[group()]};
  out.store(group(), cast(f64, scalar(k, ScalarOp::cast, to, in)));
  auto kernel = k.finish();
  EXPECT_OK(kernel);
  std::vector<double> r(v.size());
  if (kernel) EXPECT_OK(run_kernel(*kernel, {bytes_of(v), bytes_of(r)}, {}, static_cast<uint32_t>(v.size())));
  return r;
}

TEST(Scalar, Casts) {
  using D = std::vector<double>;
  const std::vector<float> f = {1.9f, -1.9f, 300.f, -300.f, 1e20f, -1e20f, NAN, 0.f};
  EXPECT_EQ(casts(f32, DType::i8, f), (D{1, -1, 127, -128, 127, -128, 0, 0}));
  EXPECT_EQ(casts(f32, DType::u8, f), (D{1, 0, 255, 0, 255, 0, 0, 0}));
  EXPECT_EQ(casts(f32, DType::i32, f), (D{1, -1, 300, -300, 2147483647, -2147483648.0, 0, 0}));
  EXPECT_EQ(casts(f32, DType::u32, f), (D{1, 0, 300, 0, 4294967295.0, 0, 0, 0}));
  EXPECT_EQ(casts(f32, DType::i64, f), (D{1, -1, 300, -300, 9223372036854775807.0, -9223372036854775808.0, 0, 0}));
  EXPECT_EQ(casts(f32, DType::boolean, f), (D{1, 1, 1, 1, 1, 1, 1, 0}));
  const std::vector<int64_t> n = {-1, 128, 65537, 5000000000, 0};
  EXPECT_EQ(casts(i64, DType::i8, n), (D{-1, -128, 1, 0, 0}));
  EXPECT_EQ(casts(i64, DType::u8, n), (D{255, 128, 1, 0, 0}));
  EXPECT_EQ(casts(i64, DType::i32, n), (D{-1, 128, 65537, 705032704, 0}));
  EXPECT_EQ(casts(i64, DType::boolean, n), (D{1, 1, 1, 1, 0}));
  EXPECT_EQ(casts(f32, DType::f16, std::vector<float>{1 + 0x1p-11f, 1e6f, 0.1f}), (D{1, INFINITY, 0.0999755859375}));
  EXPECT_EQ(casts(f32, DType::bf16, std::vector<float>{1 + 0x1p-8f, 0.1f}), (D{1, 0.10009765625}));
}

TEST(Scalar, SelectAndLogic) {
  B k("logic", 1, test_caps());
  Buffer x = buffer("x", b8), out = buffer("out", i32, Access::write);
  V p = x[0], q = x[1];
  const V not_p[] = {p}, both[] = {p, q}, pick[] = {p, V(5), V(9)};
  out.store(0, cast(i32, scalar(k, ScalarOp::logical_not, DType::boolean, not_p)));
  out.store(1, cast(i32, scalar(k, ScalarOp::bit_xor, DType::boolean, both)));
  out.store(2, scalar(k, ScalarOp::select, DType::i32, pick));
  auto kernel = k.finish();
  ASSERT_OK(kernel);
  std::vector<uint8_t> in = {1, 0, 0, 0};
  std::vector<int32_t> r(3);
  ASSERT_OK(run_kernel(*kernel, {bytes_of(in), bytes_of(r)}, {}, 1));
  EXPECT_EQ(r, (std::vector<int32_t>{0, 1, 5}));
}

TEST(Scalar, WhatKirLacksFailsByName) {
  for (DType dtype : {DType::c64, DType::f8e4m3}) {
    B k("lack", 1, test_caps());
    const V in[] = {V(1.f), V(2.f)};
    scalar(k, ScalarOp::add, dtype, in);
    const std::string text = error_text(k.finish());
    EXPECT_MENTIONS(text, "add");
    EXPECT_MENTIONS(text, dtype_name(dtype));
  }
}

}  // namespace
}  // namespace tern::kir
