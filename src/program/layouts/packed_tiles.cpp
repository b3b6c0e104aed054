#include <algorithm>
#include <cstring>
#include <vector>

#include "program/layouts/rows.h"

namespace tern {
namespace {

constexpr int64_t kBlock = 32;  // columns of a record

struct Geometry {
  int64_t k = 0, rows_per_tile = 0, bits = 0, groups = 0, scale_bytes = 0, record_bytes = 0, tile_bytes = 0;
  bool has_min = false;
};

OrRefuse<Geometry> geometry(const TensorType& type, Tile tile) {
  const Format* f = type.format;
  if (f == nullptr || (f->cls != CodeClass::packed && f->cls != CodeClass::packed_min))
    return refuse("packed tiles hold packed integers");
  if (f->scale != DType::f16 && f->scale != DType::f32) return refuse("packed tiles hold f16 or f32 scales");
  if (f->block[0] != 1) return refuse("packed tiles hold formats with blocks of one row");
  Geometry g;
  TERN_ACCEPT(g.k, layouts::columns(type));
  if (g.k % kBlock != 0 || g.k == 0) return refuse("k = " + std::to_string(g.k) + ", wants a multiple of 32");
  if (g.k % f->block[1] != 0)
    return refuse("k = " + std::to_string(g.k) + " is no multiple of the block's " + std::to_string(f->block[1]));
  g.rows_per_tile = tile[0];
  if (g.rows_per_tile == 0 || g.rows_per_tile % 2 != 0) return refuse("a tile has an even number of rows");
  g.bits = tile[1];
  if (g.bits == 0) g.bits = f->bits <= 2 ? f->bits : f->bits <= 4 ? 4 : 8;
  if ((g.bits != 1 && g.bits != 2 && g.bits != 4 && g.bits != 8) || g.bits < f->bits)
    return refuse("codes of " + std::to_string(f->bits) + " bits do not fit");
  g.groups = std::max<int64_t>(1, kBlock / f->group);
  g.scale_bytes = dtype_bytes(f->scale);
  g.has_min = f->cls == CodeClass::packed_min;
  g.record_bytes = g.rows_per_tile * (g.bits * 4 + g.groups * g.scale_bytes * (g.has_min ? 2 : 1));
  g.tile_bytes = g.record_bytes * (g.k / kBlock);
  return g;
}

OrRefuse<Dim> unit_bytes(DimTable&, const TensorType& type, Tile tile) {
  TERN_ACCEPT(const Geometry g, geometry(type, tile));
  return Dim(g.tile_bytes);
}

OrRefuse<Dim> bytes(DimTable& dims, const TensorType& type, Tile tile) {
  TERN_ACCEPT(const Geometry g, geometry(type, tile));
  return dims.mul(dims.ceildiv(layouts::rows(dims, type), g.rows_per_tile), g.tile_bytes);
}

// One row's codes, scales and mins.
struct Row {
  std::vector<uint8_t> codes;
  std::vector<uint16_t> wide;
  std::vector<float> scales, mins;
};

void split_row(const Format& f, const Planes& planes, int64_t row, int64_t blocks, Row& out) {
  if (f.split_run != nullptr) {
    f.split_run(planes, row * blocks, blocks, out.codes.data(), out.scales.data(), out.mins.data());
    return;
  }
  const int64_t columns = f.block[1], groups = columns / f.group;
  for (int64_t b = 0; b < blocks; ++b) {
    f.split(planes, row * blocks + b, out.wide.data(), out.scales.data() + b * groups, out.mins.data() + b * groups);
    std::transform(out.wide.begin(), out.wide.begin() + columns, out.codes.begin() + b * columns,
                   [](uint16_t c) { return static_cast<uint8_t>(c); });
  }
}

// The `bits` words of 32 codes: byte i of word w, field j holds code w * (32 / bits) + 4 * j + i.
template <int kBits>
void put_words(const uint8_t* codes, int64_t stride_words, std::byte* out) {
  constexpr int kFields = 8 / kBits;
  for (int w = 0; w < kBits; ++w) {
    uint32_t word = 0;
    for (int j = 0; j < kFields; ++j) {
      uint32_t four;
      std::memcpy(&four, codes + w * (32 / kBits) + 4 * j, 4);
      word |= four << (kBits * j);
    }
    std::memcpy(out + w * stride_words * 4, &word, 4);
  }
}

void put_number(float value, int64_t bytes, std::byte* out) {
  if (bytes == 4) {
    std::memcpy(out, &value, 4);
    return;
  }
  const uint16_t half = f32_to_f16(value);
  std::memcpy(out, &half, 2);
}

void put_row(const Format& f, const Geometry& g, const Row& row, int64_t lane, std::byte* tile) {
  const int64_t per_scale = std::max<int64_t>(1, f.group / kBlock);  // records that share one scale
  for (int64_t b = 0; b < g.k / kBlock; ++b) {
    std::byte* record = tile + b * g.record_bytes;
    const uint8_t* codes = row.codes.data() + b * kBlock;
    std::byte* words = record + lane * 4;
    switch (g.bits) {
      case 1: put_words<1>(codes, g.rows_per_tile, words); break;
      case 2: put_words<2>(codes, g.rows_per_tile, words); break;
      case 4: put_words<4>(codes, g.rows_per_tile, words); break;
      default: put_words<8>(codes, g.rows_per_tile, words); break;
    }
    std::byte* scales = record + g.rows_per_tile * g.bits * 4;
    std::byte* mins = scales + g.rows_per_tile * g.groups * g.scale_bytes;
    for (int64_t s = 0; s < g.groups; ++s) {
      const int64_t index = g.groups > 1 ? b * g.groups + s : b / per_scale;
      const int64_t at = (s * g.rows_per_tile + lane) * g.scale_bytes;
      put_number(row.scales[static_cast<size_t>(index)], g.scale_bytes, scales + at);
      if (g.has_min) put_number(row.mins[static_cast<size_t>(index)], g.scale_bytes, mins + at);
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
  const auto geo = geometry(type, tile);
  if (!geo) return make_error(Code::invalid, geo.why());
  const Geometry& g = *geo;
  const Format& f = *type.format;
  const int64_t blocks = g.k / f.block[1], all = layouts::constant_rows(type), end = std::min(all, row + rows);
  if (planes.p[0].size() < static_cast<uint64_t>(end * blocks) * f.bytes)
    return make_error(Code::invalid, "a value has fewer bytes than its type says");
  Row one;
  one.codes.resize(static_cast<size_t>(g.k));
  one.wide.resize(f.block[1]);
  one.scales.resize(static_cast<size_t>(g.k / f.group));
  one.mins.resize(one.scales.size());
  for (int64_t first = row; first < end; first += g.rows_per_tile) {
    std::byte* to = out + first / g.rows_per_tile * g.tile_bytes;
    if (end - first < g.rows_per_tile) std::memset(to, 0, static_cast<size_t>(g.tile_bytes));
    for (int64_t lane = 0; lane < std::min(g.rows_per_tile, end - first); ++lane) {
      split_row(f, planes, first + lane, blocks, one);
      if (!all_finite(one.scales) || (g.has_min && !all_finite(one.mins))) {
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
