// How a stored value lies in memory: weights, activations and unfinished row sums alike. A row is the last axis of who
// asked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tern/format.h"
#include "tern/result.h"
#include "tern/shape.h"
#include "tern/tensor.h"

namespace tern {

using Tile = std::array<uint16_t, 4>;  // meaning is the layout's own; {} where it has no parameters

struct LayoutDef {
  std::string_view name;  // serial forms and cache keys hold names, never addresses
  // Bytes of the whole value; refuses a K or N that does not fit, an unfitting dtype or format class.
  OrRefuse<Dim> (*bytes)(DimTable& dims, const TensorType& type, Tile tile);
  // Packs rows [row, row + rows) of a value in its file order; out is the start of the whole packed value. row is a
  // multiple of window_unit. Null: only kernels make this layout.
  Status (*pack)(const TensorType& type, const Planes& planes, Tile tile, int64_t row, int64_t rows, std::byte* out);
  // Windows are cut along this axis at multiples of window_unit(tile) rows; -1: never.
  int8_t window_axis;
  uint16_t (*window_unit)(Tile tile);
  // Bytes of one window unit (all constants), so that a window is unit * n bytes at a fixed offset; null iff
  // window_axis < 0.
  OrRefuse<Dim> (*unit_bytes)(DimTable& dims, const TensorType& type, Tile tile);
};

struct Layout {
  const LayoutDef* def = nullptr;  // null: not decided
  Tile tile{};
  bool operator==(const Layout&) const = default;
  explicit operator bool() const { return def != nullptr; }
};

// The list (layout_list.inc). `dense`: row-major elements of the dtype, or blocks in file order where a format is set.
std::span<const LayoutDef* const> all_layouts();
const LayoutDef* layout_by_name(std::string_view name);
extern const LayoutDef kDense;
// One row of int8 blocks: K/4 words of four s8 codes, then K/32 f32 scales, then K/32 i32 sums of the codes, then K/32
// i32 sums of each block's first 16 codes; tile = {1}: then K/4 words of second codes, a value being (256 * code +
// second code) * scale, and sums over both. K % 32 == 0. Each row is whole, so the number of rows moves nothing.
extern const LayoutDef kActInt8;
// Weights of every class but floats: tile = {rows per tile R, bits B stored per code, 0, 0}; R even, B = 0 means the
// format's own (7 is stored as 8). Each row tile is one stream: for each span of columns, the reach of an f16 or f32
// scale and at least 32,
//   head: the span's scales [S][R] and (packed_min) mins [S][R], elements of Format::scale; S = 2 where a scale is for
//     16 columns, else 1. With two-level scales these are the outer ones, and a span is the format's block;
//   then for each 32 columns a block: with two-level scales G x R sub-scales and (packed_min) sub-mins, G = 2 for
//     groups of 16, as bytes [G][R] s8 each, or, where sub_bits = 4, both in one byte, the scale in the low half; then
//     B words of codes, [B][R] u32.
// B = 1, 2, 4, 8: byte i of word w, field j (at bit 8*i + B*j) holds the code of column w*(32/B) + 4*j + i of the
// block, as Format::split gives it (unsigned). B = 3, 5, 6: the low 2, 4, 4 bits and the high 1, 1, 2 bits
// are words of their own, each high word in front of the 2, 4, 2 low ones of the same columns: a reader walks ahead,
// which is what memory prefetches. Rows past N are zero with scale 0.
extern const LayoutDef kPackedTiles;
// Its sizes, bytes of whole rows of lanes, or why it does not hold a type.
struct PackedGeometry {
  int64_t k = 0, rows = 0, bits = 0;          // rows of a tile, bits of a code
  int64_t span = 32, groups = 1, scales = 1;  // columns; G, S
  int64_t scale_bytes = 2, sub_planes = 0;    // of one scale; planes of sub-scales and -mins
  int64_t head_bytes = 0, block_bytes = 0, span_bytes = 0, tile_bytes = 0;
  bool has_min = false;
  int64_t low_bits() const;  // of the codes' lower plane
};
OrRefuse<PackedGeometry> packed_geometry(const TensorType& type, Tile tile);
// Float weights (f32, f16, bf16): tile = {rows per tile R}. For each row tile, [K][R] elements: one column of R rows is
// contiguous.
extern const LayoutDef kFloatTiles;

}  // namespace tern
