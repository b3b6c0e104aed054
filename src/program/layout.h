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
// One row of int8 blocks: K/4 words of four s8 codes, then K/32 f32 scales, then K/32 i32 sums of the codes; tile =
// {1}: then K/4 words of second codes, a value being (256 * code + second code) * scale, and sums over both. K % 32 ==
// 0. Each row is whole, so the number of rows moves nothing.
extern const LayoutDef kActInt8;
// Packed integer weights of classes `packed` and `packed_min`: tile = {rows per tile R, bits B stored per code, 0, 0};
// R even, B one of 1, 2, 4, 8 and at least the format's bits (3 is stored as 4; 5 and 6 as 8; B = 0 means the least
// that fits). For each row tile, for each block of 32 columns one record, contiguous: B words [B][R] u32 of codes, S x
// R scales, (packed_min) S x R mins, where S = max(1, 32 / format.group) is the number of groups in a block, [S][R],
// elements of Format::scale (f16 or f32). Byte i of word w, field j (at bit 8*i + B*j) holds the code of column
// w*(32/B) + 4*j + i of the block, as Format::split gives it (unsigned). Rows past N are zero with scale 0.
extern const LayoutDef kPackedTiles;
// Float weights (f32, f16, bf16): tile = {rows per tile R}. For each row tile, [K][R] elements: one column of R rows is
// contiguous.
extern const LayoutDef kFloatTiles;

}  // namespace tern
