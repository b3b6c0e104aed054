// Layouts read back by the words of layout.h, with no code of theirs, against what the formats decode.
#include "program/layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace tern {
namespace {

std::vector<std::byte> random_blocks(const Format& f, int64_t rows, int64_t k, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<std::byte> out;
  std::vector<float> values(f.elements());
  std::vector<std::byte> block(f.bytes);
  for (int64_t i = 0; i < rows * k / f.elements(); ++i) {
    for (float& v : values) v = std::normal_distribution<float>(0, 1.f + static_cast<float>(i % 7))(rng);
    EXPECT_TRUE(f.encode(values, nullptr, block.data()).ok());
    out.insert(out.end(), block.begin(), block.end());
  }
  return out;
}

float scale_at(const std::byte* p, DType type) {
  if (type == DType::f32) {
    float f;
    std::memcpy(&f, p, 4);
    return f;
  }
  uint16_t h;
  std::memcpy(&h, p, 2);
  return f16_to_f32(h);
}

// The value of row n, column k by the description of kPackedTiles.
float read_packed(const Format& f, const std::byte* data, int64_t columns, int64_t r, int64_t bits, int64_t n,
                  int64_t k) {
  const int64_t s = f.group >= 32 ? 1 : 32 / f.group, scale = f.scale == DType::f32 ? 4 : 2;
  const int64_t planes = f.cls == CodeClass::packed_min ? 2 : 1;
  const int64_t record = bits * r * 4 + s * r * scale * planes;
  const std::byte* rec = data + (n / r) * (columns / 32) * record + (k / 32) * record;
  const int64_t c = k % 32, w = c / (32 / bits), in_word = c % (32 / bits), j = in_word / 4, i = in_word % 4;
  uint32_t word;
  std::memcpy(&word, rec + (w * r + n % r) * 4, 4);
  const auto code = static_cast<float>((word >> (8 * i + bits * j)) & ((1u << bits) - 1));
  const std::byte* scales = rec + bits * r * 4;
  const int64_t group = s == 1 ? 0 : c / f.group;
  const float d = scale_at(scales + (group * r + n % r) * scale, f.scale);
  if (planes == 1) return (code - static_cast<float>(f.zero)) * d;
  return std::fma(code, d, scale_at(scales + s * r * scale + (group * r + n % r) * scale, f.scale));
}

class PackedTiles : public testing::TestWithParam<const char*> {};

TEST_P(PackedTiles, HoldsWhatTheFormatDecodes) {
  const Format* f = format_by_name(GetParam());
  ASSERT_NE(f, nullptr);
  constexpr int64_t kRows = 37, kColumns = 96;
  const std::vector<std::byte> file = random_blocks(*f, kRows, kColumns, 7);
  const TensorType type{DType::f32, {kRows, kColumns}, f};
  Planes planes;
  planes.p[0] = file;
  std::vector<float> want(kRows * kColumns);
  for (int64_t b = 0; b < kRows * kColumns / f->elements(); ++b) f->decode(planes, b, want.data() + b * f->elements());
  DimTable dims;
  for (const uint16_t r : {uint16_t{2}, uint16_t{16}, uint16_t{64}}) {
    const Tile tile{r, 0, 0, 0};
    const auto bytes = kPackedTiles.bytes(dims, type, tile);
    ASSERT_TRUE(bytes.ok()) << bytes.why();
    const int64_t bits = f->bits <= 2 ? f->bits : f->bits <= 4 ? 4 : 8;
    std::vector<std::byte> out(static_cast<size_t>(*bytes->constant()), std::byte{0xee});
    // In two windows, the second one short.
    ASSERT_TRUE(kPackedTiles.pack(type, planes, tile, 0, r == 64 ? 64 : 32, out.data()).ok());
    if (r < 64) {
      ASSERT_TRUE(kPackedTiles.pack(type, planes, tile, 32, kRows - 32, out.data()).ok());
    }
    for (int64_t n = 0; n < kRows; ++n) {
      for (int64_t k = 0; k < kColumns; ++k) {
        const float got = read_packed(*f, out.data(), kColumns, r, bits, n, k);
        const float w = want[static_cast<size_t>(n * kColumns + k)];
        // code * scale + min may be rounded once here and twice there.
        ASSERT_NEAR(got, w, f->cls == CodeClass::packed_min ? 1e-5f * (1 + std::fabs(w)) : 0.f)
            << n << "," << k << " r" << r;
      }
    }
    const int64_t padded = (kRows + r - 1) / r * r;
    for (int64_t n = kRows; n < padded; ++n) {
      ASSERT_EQ(std::fabs(read_packed(*f, out.data(), kColumns, r, bits, n, 95)), 0.f);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Formats, PackedTiles, testing::Values("q4_0", "q4_1", "q8_0"));

TEST(Layout, PackedTilesSizesAreThoseOfTheBook) {
  DimTable dims;
  const TensorType w{DType::f32, {576, 576}, format_by_name("q4_0")};
  // A record of 16 rows: 4 words of codes and one f16 scale a row: 16 * (16 + 2) = 288 bytes; 18 records a tile, 36
  // tiles.
  EXPECT_EQ(*kPackedTiles.unit_bytes(dims, w, {16, 4, 0, 0}), Dim(288 * 18));
  EXPECT_EQ(*kPackedTiles.bytes(dims, w, {16, 0, 0, 0}), Dim(288 * 18 * 36));
  EXPECT_EQ(*kPackedTiles.bytes(dims, {DType::f32, {577, 576}, w.format}, {16, 0, 0, 0}), Dim(288 * 18 * 37));
  EXPECT_EQ(kPackedTiles.window_unit({16, 4, 0, 0}), 16);
}

TEST(Layout, RefusesWithTheReason) {
  DimTable dims;
  const Format* q4 = format_by_name("q4_0");
  const auto why = [&](const auto& r) { return r.ok() ? std::string("taken") : r.why(); };
  EXPECT_EQ(why(kPackedTiles.bytes(dims, {DType::f32, {8, 48}, q4}, {16, 0, 0, 0})), "k = 48, wants a multiple of 32");
  EXPECT_EQ(why(kPackedTiles.bytes(dims, {DType::f32, {8, 64}, nullptr}, {16, 0, 0, 0})),
            "packed tiles hold packed integers");
  EXPECT_EQ(why(kPackedTiles.bytes(dims, {DType::f32, {8, 64}, q4}, {15, 0, 0, 0})),
            "a tile has an even number of rows");
  EXPECT_EQ(why(kPackedTiles.bytes(dims, {DType::f32, {8, 64}, q4}, {16, 2, 0, 0})), "codes of 4 bits do not fit");
  EXPECT_EQ(why(kActInt8.bytes(dims, {DType::f32, {8, 40}}, {})), "k = 40, wants a multiple of 32");
  EXPECT_EQ(why(kActInt8.bytes(dims, {DType::i32, {8, 64}}, {})), "int8 activation blocks hold float values");
  EXPECT_EQ(why(kFloatTiles.bytes(dims, {DType::f64, {8, 40}}, {16, 0, 0, 0})), "float tiles hold f32, f16 or bf16");
}

TEST(Layout, FloatTilesAreColumnsOfRows) {
  DimTable dims;
  constexpr int64_t kRows = 21, kColumns = 19;
  std::vector<float> v(kRows * kColumns);
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i) + 0.25f;
  const TensorType type{DType::f32, {kRows, kColumns}};
  const auto bytes = kFloatTiles.bytes(dims, type, {8, 0, 0, 0});
  ASSERT_TRUE(bytes.ok());
  ASSERT_EQ(*bytes, Dim(24 * kColumns * 4));
  std::vector<float> out(24 * kColumns, -1.f);
  Planes planes;
  planes.p[0] = std::as_bytes(std::span(v));
  ASSERT_TRUE(kFloatTiles.pack(type, planes, {8, 0, 0, 0}, 0, kRows, reinterpret_cast<std::byte*>(out.data())).ok());
  for (int64_t n = 0; n < 24; ++n) {
    for (int64_t k = 0; k < kColumns; ++k) {
      ASSERT_EQ(out[static_cast<size_t>((n / 8 * kColumns + k) * 8 + n % 8)],
                n < kRows ? v[static_cast<size_t>(n * kColumns + k)] : 0.f);
    }
  }
}

TEST(Layout, ActivationsGrowWithTheirRowsOnly) {
  DimTable dims;
  const Dim t = *dims.symbol({"T", 1, 512, 1, false});
  EXPECT_EQ(dims.text(*kActInt8.bytes(dims, {DType::f32, {t, 576}}, {})), "720*T");  // 576 * 5 / 16 words of four bytes
  EXPECT_EQ(dims.text(*kActInt8.bytes(dims, {DType::f32, {t, 576}}, {1})), "1296*T");  // a second byte of code each
  EXPECT_EQ(dims.text(*kDense.bytes(dims, {DType::f32, {t, 576}}, {})), "2304*T");
  // Three bytes a row: whole words in all.
  EXPECT_EQ(dims.range(*kDense.bytes(dims, {DType::i8, {t, 3}}, {})).second, 1536);
  EXPECT_EQ(*kDense.bytes(dims, {DType::u8, {3, 3}}, {}), Dim(12));
  EXPECT_EQ(*kDense.bytes(dims, {DType::f64, {}}, {}), Dim(8));
}

TEST(Layout, NamesFindTheDefs) {
  for (const LayoutDef* def : all_layouts()) EXPECT_EQ(layout_by_name(def->name), def);
  EXPECT_EQ(layout_by_name("dense"), &kDense);
  EXPECT_EQ(layout_by_name("no_such"), nullptr);
}

TEST(Layout, ShortDataIsAnError) {
  const Format* q8 = format_by_name("q8_0");
  const TensorType type{DType::f32, {4, 64}, q8};
  std::vector<std::byte> file(34 * 7), out(1 << 12);
  Planes planes;
  planes.p[0] = file;
  EXPECT_FALSE(kPackedTiles.pack(type, planes, {2, 0, 0, 0}, 0, 4, out.data()).ok());
  EXPECT_FALSE(kDense.pack(type, planes, {}, 0, 4, out.data()).ok());
  EXPECT_TRUE(kDense.pack(type, planes, {}, 0, 3, out.data()).ok());
}

}  // namespace
}  // namespace tern
