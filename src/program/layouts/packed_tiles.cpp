#include <algorithm>
#include <cstring>
#include <vector>

#include "program/layouts/rows.h"

namespace tern {

int64_t PackedGeometry::low_bits() const { return bits >= 8 ? 8 : bits >= 4 ? 4 : bits >= 2 ? 2 : 1; }

OrRefuse<PackedGeometry> packed_geometry(const TensorType& type, Tile tile) {
  const Format* f = type.format;
  if (f == nullptr || f->cls == CodeClass::flt) return refuse("packed tiles hold packed integers and codes of tables");
  if (f->scale != DType::f16 && f->scale != DType::f32) return refuse("packed tiles hold f16 or f32 scales");
  if (f->block[0] != 1) return refuse("packed tiles hold formats with blocks of one row");
  if (f->group % 32 != 0 && f->group != 16) return refuse("packed tiles hold groups of 16 or of whole blocks of 32");
  PackedGeometry g;
  TERN_ACCEPT(g.k, layouts::columns(type));
  if (g.k % 32 != 0 || g.k == 0) return refuse("k = " + std::to_string(g.k) + ", wants a multiple of 32");
  if (g.k % f->block[1] != 0)
    return refuse("k = " + std::to_string(g.k) + " is no multiple of the block's " + std::to_string(f->block[1]));
  g.rows = tile[0];
  if (g.rows == 0 || g.rows % 2 != 0) return refuse("a tile has an even number of rows");
  g.bits = tile[1] != 0 ? tile[1] : f->bits == 7 ? 8 : f->bits;
  if (g.bits < f->bits || g.bits == 7 || g.bits > 8)
    return refuse("codes of " + std::to_string(f->bits) + " bits do not fit");
  const bool two_level = f->sub_bits != 0;
  if (two_level && g.rows % 4 != 0) return refuse("a tile of two-level scales has a multiple of four rows");
  if (two_level && f->group > 32) return refuse("two-level scales have groups of 16 or 32");
  g.groups = f->group == 16 ? 2 : 1;
  g.has_min = f->cls == CodeClass::packed_min;
  g.scale_bytes = dtype_bytes(f->scale);
  g.sub_planes = !two_level ? 0 : f->sub_bits == 8 && g.has_min ? 2 : 1;
  g.span = std::max<int64_t>(32, two_level ? f->block[1] : f->group);
  g.scales = two_level ? 1 : g.groups;
  g.head_bytes = g.rows * g.scales * g.scale_bytes * (g.has_min ? 2 : 1);
  g.block_bytes = g.rows * (g.bits * 4 + g.sub_planes * g.groups);
  g.span_bytes = g.head_bytes + g.span / 32 * g.block_bytes;
  g.tile_bytes = g.span_bytes * (g.k / g.span);
  return g;
}

namespace {

OrRefuse<Dim> unit_bytes(DimTable&, const TensorType& type, Tile tile) {
  TERN_ACCEPT(const PackedGeometry g, packed_geometry(type, tile));
  return Dim(g.tile_bytes);
}

OrRefuse<Dim> bytes(DimTable& dims, const TensorType& type, Tile tile) {
  TERN_ACCEPT(const PackedGeometry g, packed_geometry(type, tile));
  return dims.mul(dims.ceildiv(layouts::rows(dims, type), g.rows), g.tile_bytes);
}

// One row as its format splits it.
struct Row {
  std::vector<uint8_t> codes;
  std::vector<float> scales, mins, outer_scales, outer_mins;

  Row(const Format& f, int64_t k) : codes(static_cast<size_t>(k)) {
    const auto groups = static_cast<size_t>(k / f.group), blocks = static_cast<size_t>(k / f.block[1]);
    scales.resize(groups);
    mins.resize(groups);
    if (f.sub_bits != 0) outer_scales.resize(blocks), outer_mins.resize(blocks);
  }
  SplitPlanes planes() { return {codes.data(), scales.data(), mins.data(), outer_scales.data(), outer_mins.data()}; }
};

// The `kBits` words of one plane of 32 codes, bits [shift, shift + kBits) of each: byte i of word w, field j holds code
// w * (32 / kBits) + 4 * j + i. Word w lies at place(w).
template <int kBits, class Place>
void put_words(const uint8_t* codes, int shift, int64_t stride_words, std::byte* out, Place place) {
  constexpr int kFields = 8 / kBits;
  constexpr uint32_t kMask = kBits == 8 ? 0xffffffffu : ((1u << kBits) - 1) * 0x01010101u;
  for (int w = 0; w < kBits; ++w) {
    uint32_t word = 0;
    for (int j = 0; j < kFields; ++j) {
      uint32_t four;
      std::memcpy(&four, codes + w * (32 / kBits) + 4 * j, 4);
      word |= (four >> shift & kMask) << (kBits * j);
    }
    std::memcpy(out + place(w) * stride_words * 4, &word, 4);
  }
}

template <class Place>
void put_plane(int bits, const uint8_t* codes, int shift, int64_t stride_words, std::byte* out, Place place) {
  switch (bits) {
    case 1: return put_words<1>(codes, shift, stride_words, out, place);
    case 2: return put_words<2>(codes, shift, stride_words, out, place);
    case 4: return put_words<4>(codes, shift, stride_words, out, place);
    default: return put_words<8>(codes, shift, stride_words, out, place);
  }
}

// All words of a lane's 32 codes; each word of the high plane stands before the low ones that it completes.
void put_codes(const PackedGeometry& g, const uint8_t* codes, std::byte* out) {
  const int low = static_cast<int>(g.low_bits()), high = static_cast<int>(g.bits) - low;
  if (high == 0) return put_plane(low, codes, 0, g.rows, out, [](int w) { return w; });
  const int per_high = low / high;
  put_plane(low, codes, 0, g.rows, out, [&](int w) { return w + w / per_high + 1; });
  put_plane(high, codes, low, g.rows, out, [&](int w) { return w * (per_high + 1); });
}

void put_number(float value, int64_t bytes, std::byte* out) {
  if (bytes == 4) {
    std::memcpy(out, &value, 4);
    return;
  }
  const uint16_t half = f32_to_f16(value);
  std::memcpy(out, &half, 2);
}

// Scales (and mins) of one span, from `first` on.
void put_head(const PackedGeometry& g, const std::vector<float>& scales, const std::vector<float>& mins, size_t first,
              int64_t lane, std::byte* head) {
  std::byte* low = head + g.rows * g.scales * g.scale_bytes;
  for (int64_t s = 0; s < g.scales; ++s) {
    const int64_t at = (s * g.rows + lane) * g.scale_bytes;
    put_number(scales[first + static_cast<size_t>(s)], g.scale_bytes, head + at);
    if (g.has_min) put_number(mins[first + static_cast<size_t>(s)], g.scale_bytes, low + at);
  }
}

// Sub-scales and -mins of one block of 32.
void put_subs(const Format& f, const PackedGeometry& g, const Row& row, int64_t block, int64_t lane, std::byte* out) {
  for (int64_t s = 0; s < g.groups; ++s) {
    const auto index = static_cast<size_t>(block * g.groups + s);
    const int scale = static_cast<int>(row.scales[index]), min = g.has_min ? static_cast<int>(row.mins[index]) : 0;
    std::byte* at = out + s * g.rows + lane;
    *at = static_cast<std::byte>(f.sub_bits == 4 ? scale | min << 4 : scale);
    if (g.sub_planes == 2) at[g.groups * g.rows] = static_cast<std::byte>(min);
  }
}

void put_row(const Format& f, const PackedGeometry& g, const Row& row, int64_t lane, std::byte* tile) {
  const bool two_level = f.sub_bits != 0;
  const int64_t blocks = g.span / 32;
  for (int64_t span = 0; span < g.k / g.span; ++span) {
    std::byte* head = tile + span * g.span_bytes;
    put_head(g, two_level ? row.outer_scales : row.scales, two_level ? row.outer_mins : row.mins,
             static_cast<size_t>(span * g.scales), lane, head);
    for (int64_t b = 0; b < blocks; ++b) {
      std::byte* block = head + g.head_bytes + b * g.block_bytes;
      const uint8_t* codes = row.codes.data() + (span * blocks + b) * 32;
      if (two_level) put_subs(f, g, row, span * blocks + b, lane, block);
      put_codes(g, codes, block + g.sub_planes * g.groups * g.rows + lane * 4);
    }
  }
}

// Quantised activations would hide such a value: integers know no NaN, and the answer would be fluent and wrong.
bool all_finite(const std::vector<float>& values) {
  float zero = 0;
  for (const float v : values) zero += v * 0.f;
  return zero == 0.f;
}

Status pack(const TensorType& type, const Planes& planes, Tile tile, int64_t row, int64_t rows, std::byte* out) {
  const auto geo = packed_geometry(type, tile);
  if (!geo) return make_error(Code::invalid, geo.why());
  const PackedGeometry& g = *geo;
  const Format& f = *type.format;
  const int64_t blocks = g.k / f.block[1], all = layouts::constant_rows(type), end = std::min(all, row + rows);
  if (planes.p[0].size() < static_cast<uint64_t>(end * blocks) * f.bytes)
    return make_error(Code::invalid, "a value has fewer bytes than its type says");
  Row one(f, g.k);
  for (int64_t first = row; first < end; first += g.rows) {
    std::byte* to = out + first / g.rows * g.tile_bytes;
    if (end - first < g.rows) std::memset(to, 0, static_cast<size_t>(g.tile_bytes));
    for (int64_t lane = 0; lane < std::min(g.rows, end - first); ++lane) {
      f.split(planes, (first + lane) * blocks, blocks, one.planes());
      if (!all_finite(one.scales) || !all_finite(one.mins) || !all_finite(one.outer_scales) ||
          !all_finite(one.outer_mins)) {
        return make_error(Code::malformed, "row " + std::to_string(first + lane) +
                                               " has a block whose scale is not finite (NaN or inf)");
      }
      put_row(f, g, one, lane, to);
    }
  }
  return ok();
}

}  // namespace

const LayoutDef kPackedTiles = {"packed_tiles", bytes, pack, 0, [](Tile tile) { return tile[0]; }, unit_bytes};

}  // namespace tern
