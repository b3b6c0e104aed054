// Layouts read back by the words of layout.h, with no code of theirs, against what the formats decode.
#include "program/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
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
struct TileReader {
  const Format& f;
  const std::byte* data;
  int64_t columns, r, bits;

  int64_t byte(int64_t at) const { return static_cast<int64_t>(data[at]); }
  // Of a plane of b bits, whose word w is the place[w]-th of the block.
  int64_t plane_code(int64_t block, int64_t b, std::vector<int64_t> place, int64_t c, int64_t lane) const {
    const int64_t w = c / (32 / b), in_word = c % (32 / b), j = in_word / 4, i = in_word % 4;
    uint32_t word;
    std::memcpy(&word, data + block + (place[static_cast<size_t>(w)] * r + lane) * 4, 4);
    return (word >> (8 * i + b * j)) & ((1u << b) - 1);
  }
  float operator()(int64_t n, int64_t k) const {
    const bool two_level = f.sub_bits != 0, low = f.cls == CodeClass::packed_min;
    const int64_t groups = f.group == 16 ? 2 : 1, scale = f.scale == DType::f32 ? 4 : 2, s = two_level ? 1 : groups;
    const int64_t span = std::max<int64_t>(32, two_level ? f.block[1] : f.group);
    const int64_t head = s * r * scale * (low ? 2 : 1);
    const int64_t subs = !two_level ? 0 : groups * r * (low && f.sub_bits == 8 ? 2 : 1);
    const int64_t block_bytes = bits * r * 4 + subs, span_bytes = head + span / 32 * block_bytes;
    const int64_t start = (n / r) * (columns / span) * span_bytes + k / span * span_bytes, lane = n % r;
    const int64_t block = start + head + k % span / 32 * block_bytes, c = k % 32;
    int64_t code = 0;
    switch (const int64_t words = block + subs; bits) {
      case 3: code = plane_code(words, 2, {1, 2}, c, lane) | plane_code(words, 1, {0}, c, lane) << 2; break;
      case 5: code = plane_code(words, 4, {1, 2, 3, 4}, c, lane) | plane_code(words, 1, {0}, c, lane) << 4; break;
      case 6: code = plane_code(words, 4, {1, 2, 4, 5}, c, lane) | plane_code(words, 2, {0, 3}, c, lane) << 4; break;
      default: code = plane_code(words, bits, {0, 1, 2, 3, 4, 5, 6, 7}, c, lane);
    }
    const int64_t group = groups == 2 ? c / 16 : 0;
    auto at = [&](int64_t plane) {
      return scale_at(data + start + ((plane * s + (two_level ? 0 : group)) * r + lane) * scale, f.scale);
    };
    float d = at(0), m = low ? at(1) : 0.f;
    if (two_level) {
      const int64_t sub = byte(block + group * r + lane);
      const int64_t sub_min = low && f.sub_bits == 8 ? byte(block + (groups + group) * r + lane) : 0;
      d *= static_cast<float>(f.sub_bits == 8 ? static_cast<int8_t>(sub) : sub & 15);
      m *= static_cast<float>(f.sub_bits == 8 ? static_cast<int8_t>(sub_min) : sub >> 4);
    }
    if (f.cls == CodeClass::lookup) return static_cast<float>(f.table[static_cast<size_t>(code)]) * d;
    if (low) return static_cast<float>(code) * d + m;
    return static_cast<float>(f.step * code - f.zero) * d;
  }
};

class PackedTiles : public testing::TestWithParam<const char*> {};

TEST_P(PackedTiles, HoldsWhatTheFormatDecodes) {
  const Format* f = format_by_name(GetParam());
  ASSERT_NE(f, nullptr);
  constexpr int64_t kRows = 37;
  const int64_t kColumns = f->block[1] * 3;
  const std::vector<std::byte> file = random_blocks(*f, kRows, kColumns, 7);
  const TensorType type{DType::f32, {kRows, kColumns}, f};
  Planes planes;
  planes.p[0] = file;
  std::vector<float> want(static_cast<size_t>(kRows * kColumns));
  for (int64_t b = 0; b < kRows * kColumns / f->elements(); ++b) f->decode(planes, b, want.data() + b * f->elements());
  DimTable dims;
  for (const uint16_t r : {uint16_t{4}, uint16_t{16}, uint16_t{64}}) {
    const Tile tile{r, 0, 0, 0};
    const auto bytes = kPackedTiles.bytes(dims, type, tile);
    ASSERT_TRUE(bytes.ok()) << bytes.why();
    std::vector<std::byte> out(static_cast<size_t>(*bytes->constant()), std::byte{0xee});
    // In two windows, the second one short.
    ASSERT_TRUE(kPackedTiles.pack(type, planes, tile, 0, r == 64 ? 64 : 32, out.data()).ok());
    if (r < 64) {
      ASSERT_TRUE(kPackedTiles.pack(type, planes, tile, 32, kRows - 32, out.data()).ok());
    }
    const TileReader read{*f, out.data(), kColumns, r, f->bits};
    for (int64_t n = 0; n < kRows; ++n) {
      for (int64_t k = 0; k < kColumns; ++k)
        ASSERT_EQ(read(n, k), want[static_cast<size_t>(n * kColumns + k)]) << n << "," << k << " r" << r;
    }
    const int64_t padded = (kRows + r - 1) / r * r;
    for (int64_t n = kRows; n < padded; ++n) {
      ASSERT_EQ(std::fabs(read(n, kColumns - 1)), 0.f);
    }
  }
}

std::vector<const char*> packed_formats() {
  std::vector<const char*> out;
  for (const Format* f : all_formats())
    if (f->cls != CodeClass::flt) out.push_back(f->name.data());  // names are literals
  return out;
}
INSTANTIATE_TEST_SUITE_P(Formats, PackedTiles, testing::ValuesIn(packed_formats()));

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
            "packed tiles hold packed integers and codes of tables");
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
  EXPECT_EQ(dims.text(*kActInt8.bytes(dims, {DType::f32, {t, 576}}, {})), "792*T");    // 18 blocks of 44 bytes
  EXPECT_EQ(dims.text(*kActInt8.bytes(dims, {DType::f32, {t, 576}}, {1})), "1368*T");  // a second byte of code each
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
