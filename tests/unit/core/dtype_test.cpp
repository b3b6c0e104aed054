#include "tern/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>

namespace tern {
namespace {

TEST(DType, TableMatchesTheEnum) {
  const std::map<DType, std::pair<std::string_view, uint32_t>> expected = {
      {DType::f64, {"f64", 8}},   {DType::f32, {"f32", 4}},       {DType::f16, {"f16", 2}},
      {DType::bf16, {"bf16", 2}}, {DType::f8e4m3, {"f8e4m3", 1}}, {DType::f8e5m2, {"f8e5m2", 1}},
      {DType::i64, {"i64", 8}},   {DType::i32, {"i32", 4}},       {DType::i16, {"i16", 2}},
      {DType::i8, {"i8", 1}},     {DType::u64, {"u64", 8}},       {DType::u32, {"u32", 4}},
      {DType::u16, {"u16", 2}},   {DType::u8, {"u8", 1}},         {DType::boolean, {"bool", 1}},
      {DType::c64, {"c64", 8}},   {DType::c128, {"c128", 16}}};
  ASSERT_EQ(expected.size(), size_t{kDTypeCount});
  for (const auto& [dtype, row] : expected) {
    EXPECT_EQ(dtype_name(dtype), row.first);
    EXPECT_EQ(dtype_bytes(dtype), row.second);
    EXPECT_EQ(dtype_from_name(row.first), dtype);
  }
  EXPECT_EQ(dtype_from_name("f33"), std::nullopt);
  EXPECT_TRUE(is_float(DType::f8e4m3) && is_int(DType::u64) && is_complex(DType::c64));
  EXPECT_FALSE(is_int(DType::boolean) || is_float(DType::c64));
  EXPECT_EQ(dtype_info(DType::f32).highest, static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_EQ(f16_to_f32(0x7bff), dtype_info(DType::f16).highest);
  EXPECT_EQ(bf16_to_f32(0x7f7f), dtype_info(DType::bf16).highest);
  EXPECT_EQ(f8e4m3_to_f32(0x7e), dtype_info(DType::f8e4m3).highest);
  EXPECT_EQ(f8e5m2_to_f32(0x7b), dtype_info(DType::f8e5m2).highest);
}

TEST(DType, KnownValues) {
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_f32(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(f16_to_f32(0xc170), -2.71875f);
  EXPECT_TRUE(std::isinf(f16_to_f32(0xfc00)) && f16_to_f32(0xfc00) < 0);
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7e01)));
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(std::ldexp(1.0f, -25)), 0x0000);  // a tie, to even
  EXPECT_EQ(f32_to_f16(std::nextafter(std::ldexp(1.0f, -25), 1.0f)), 0x0001);
  EXPECT_EQ(f32_to_f16(1.0f + std::ldexp(1.0f, -11)), 0x3c00);  // a tie, to even
  EXPECT_EQ(f32_to_f16(1.0f + 3 * std::ldexp(1.0f, -11)), 0x3c02);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
  EXPECT_EQ(f32_to_f16(6.1035e-5f), 0x0400);  // rounds up into the normals
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  // OCP 8-bit floating point specification, table 2.
  EXPECT_EQ(f8e4m3_to_f32(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(f8e4m3_to_f32(0x08), std::ldexp(1.0f, -6));
  EXPECT_EQ(f8e4m3_to_f32(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(f8e4m3_to_f32(0x7f)) && std::isnan(f8e4m3_to_f32(0xff)));
  EXPECT_EQ(f8e5m2_to_f32(0x01), std::ldexp(1.0f, -16));
  EXPECT_EQ(f8e5m2_to_f32(0x7b), 57344.0f);
  EXPECT_TRUE(std::isinf(f8e5m2_to_f32(0x7c)) && std::isnan(f8e5m2_to_f32(0x7d)));
  EXPECT_EQ(f32_to_f8e4m3(464.0f), 0x7e);  // a tie between 448 and what would be 480
  EXPECT_EQ(f32_to_f8e4m3(465.0f), 0x7f);
  EXPECT_EQ(f32_to_f8e4m3(-1e9f), 0xff);
  EXPECT_EQ(f32_to_f8e5m2(1e9f), 0x7c);
}

// Rounding against a search over all values of the type.
template <class Bits>
void check_nearest(float (*widen)(Bits), Bits (*narrow)(float), float low, float high) {
  std::vector<std::pair<float, Bits>> values;
  for (uint32_t b = 0; b < (1u << (8 * sizeof(Bits) - 1)); ++b) {
    const float v = widen(static_cast<Bits>(b));
    if (!std::isfinite(v)) continue;
    EXPECT_EQ(narrow(v), b);
    values.push_back({v, static_cast<Bits>(b)});
  }
  std::mt19937 rng(3);
  std::uniform_real_distribution<float> exponent(std::log2(low), std::log2(high));
  for (int i = 0; i < 20000; ++i) {
    const float x = std::exp2(exponent(rng));
    auto up = std::lower_bound(values.begin(), values.end(), std::pair<float, Bits>{x, 0});
    if (up == values.end() || up == values.begin()) continue;
    const auto down = up - 1;
    const double a = static_cast<double>(x) - down->first, b = static_cast<double>(up->first) - x;
    const Bits want = a < b || (a == b && down->second % 2 == 0) ? down->second : up->second;
    ASSERT_EQ(narrow(x), want) << x;
    ASSERT_EQ(narrow(-x), static_cast<Bits>(want | (1u << (8 * sizeof(Bits) - 1)))) << x;
  }
}

TEST(DType, RoundsToNearestEven) {
  check_nearest<uint16_t>(f16_to_f32, f32_to_f16, 1e-8f, 65000.0f);
  check_nearest<uint16_t>(bf16_to_f32, f32_to_bf16, 1e-30f, 1e30f);
  check_nearest<uint8_t>(f8e4m3_to_f32, f32_to_f8e4m3, 1e-4f, 440.0f);
  check_nearest<uint8_t>(f8e5m2_to_f32, f32_to_f8e5m2, 1e-6f, 50000.0f);
}

}  // namespace
}  // namespace tern
