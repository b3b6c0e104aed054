#include "graph/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "test_ops.h"

namespace tern {
namespace {

TEST(Reference, RoundsOnce) {
  // Through f32 this would tie down to 1: 1 + 2^-11 is a tie of f16 and 2^-40 decides.
  EXPECT_EQ(round_to(DType::f16, 1 + std::ldexp(1, -11) + std::ldexp(1, -40)), 1 + std::ldexp(1, -10));
  EXPECT_EQ(round_to(DType::f16, 1 + std::ldexp(1, -11)), 1);
  EXPECT_EQ(round_to(DType::bf16, 1 + std::ldexp(1, -8) + std::ldexp(1, -50)), 1 + std::ldexp(1, -7));
  EXPECT_EQ(round_to(DType::bf16, 1 + std::ldexp(1, -8) - std::ldexp(1, -50)), 1);
  EXPECT_EQ(round_to(DType::f16, 65519.999999), 65504);
  EXPECT_TRUE(std::isinf(round_to(DType::f16, 1e300)) && std::isinf(round_to(DType::f32, 1e300)) &&
              std::isinf(round_to(DType::bf16, -1e300)));
  EXPECT_TRUE(std::isnan(round_to(DType::f8e4m3, 1e300)) && std::isnan(round_to(DType::f16, NAN)));
  EXPECT_EQ(round_to(DType::f64, 0.1), 0.1);
  EXPECT_EQ(round_to(DType::f16, std::ldexp(1, -25) + std::ldexp(1, -70)), std::ldexp(1, -24));
  EXPECT_EQ(round_to(DType::f16, 1e-300), 0);
  // Against rounding in steps of the type's own spacing.
  std::mt19937 rng(2);
  std::uniform_real_distribution<double> any(1, 2);
  for (int i = 0; i < 1000; ++i) {
    const double v = any(rng), scale = std::ldexp(1, static_cast<int>(rng() % 20) - 10);
    EXPECT_EQ(round_to(DType::f16, v * scale), std::nearbyint(v * 1024) / 1024 * scale);
    EXPECT_EQ(round_to(DType::f8e5m2, -v * scale), -std::nearbyint(v * 4) / 4 * scale);
  }
}

TEST(Reference, Wraps) {
  EXPECT_EQ(wrap_to(DType::i8, 130), -126);
  EXPECT_EQ(wrap_to(DType::u8, -1), 255);
  EXPECT_EQ(wrap_to(DType::i32, int64_t{1} << 31), INT32_MIN);
  EXPECT_EQ(wrap_to(DType::u64, -1), -1);  // its bits
  EXPECT_EQ(wrap_to(DType::i64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(wrap_to(DType::boolean, 6), 1);
}

TEST(Reference, ConstantsGoThrough) {
  const auto check = [](const Const& c, std::vector<double> f, std::vector<int64_t> i) {
    auto t = ref_from(c);
    ASSERT_TRUE(t.ok());
    EXPECT_EQ(t->f, f);
    EXPECT_EQ(t->i, i);
    EXPECT_EQ(const_from(*t), c);
  };
  check(make_const<uint16_t>(DType::f16, {2}, {0x3c00, 0xc000}), {1, -2}, {});
  check(make_const<float>(DType::c64, {1}, {1.5f, -2}), {1.5, -2}, {});
  check(make_const<int16_t>(DType::i16, {2, 1}, {-3, 500}), {}, {-3, 500});
  check(make_const<uint8_t>(DType::u8, {1}, {200}), {}, {200});
  check(make_const<uint64_t>(DType::u64, {}, {UINT64_MAX}), {}, {-1});
  EXPECT_FALSE(ref_from(Const{DType::f32, {2}, nullptr}).ok());
  std::vector<float> out(2);
  EXPECT_TRUE(ref_store({DType::f32, {2}, {0.1, 3}, {}}, mutable_view<float>(out, {2})).ok());
  EXPECT_EQ(out, (std::vector<float>{0.1f, 3}));
  EXPECT_FALSE(ref_store({DType::f32, {3}, {0.1, 3, 4}, {}}, mutable_view<float>(out, {2})).ok());
}

TEST(Reference, BlocksAreDecoded) {
  // Q8_0: an f16 scale, then 32 signed codes.
  std::vector<std::byte> bytes(68);
  bytes[1] = std::byte{0x38};   // 0.5
  bytes[35] = std::byte{0x40};  // 2
  for (int i = 0; i < 32; ++i)
    bytes[static_cast<size_t>(2 + i)] = static_cast<std::byte>(i - 16),
                                  bytes[static_cast<size_t>(36 + i)] = static_cast<std::byte>(i);
  auto t = ref_from(TensorView{DType::f32, {2, 32}, bytes, format_by_name("q8_0")});
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->f[0], -8);
  EXPECT_EQ(t->f[31], 7.5);
  EXPECT_EQ(t->f[33], 2);
  EXPECT_EQ(t->f[63], 62);
}

}  // namespace
}  // namespace tern
