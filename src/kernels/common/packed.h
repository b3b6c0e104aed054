// Packed tiles (kPackedTiles) as kernels read them: (step * code - zero) * scale [+ min], whatever planes hold the code
// and however scales are stored.
#pragma once

#include <array>

#include "kernels/common/launch.h"

namespace tern::kernels {

// One weight's format and tile, in the numbers that kernels need.
struct Packed {
  uint32_t rows = 0;                // of a tile, R
  uint32_t bits = 0, low_bits = 0;  // stored per code; of its lower plane
  uint32_t code_bits = 0;           // of what codes4 gives
  uint32_t groups = 1, group = 32;  // scales of a block of 32 columns, and their columns
  uint32_t span_blocks = 1;         // blocks of 32 columns from one head to the next
  bool has_min = false;
  uint32_t sub_bits = 0;  // two-level scales: as in Format
  int32_t zero = 0, step = 1;
  bool has_table = false;
  std::array<uint8_t, 16> table{};  // what codes4 gives for a code: its value plus zero
  kir::Type scale = kir::f16;
  uint32_t span_bytes = 0, head_bytes = 0, sub_bytes = 0, block_bytes = 0;

  uint32_t span_columns() const { return 32 * span_blocks; }
};

// Refuses formats and tiles that kPackedTiles does not hold.
OrRefuse<Packed> packed_shape(const TensorType& type, Tile tile);

// One row of a tile (a lane each, or one for all) in one span. Made where the span begins, so that what holds for all
// of it is read there.
class PackedRow {
 public:
  // words: the packed value or a window of it; span: counted from the start of that, all spans of a tile one after the
  // other.
  PackedRow(const Packed& f, const kir::Buffer& words, const kir::V& span, const kir::V& row);

  // Four neighbouring codes, byte by byte, ready for dot4: columns 4 * quad .. 4 * quad + 3 of a block of the span.
  kir::V codes4(const kir::V& block, const kir::V& quad) const;
  // f32 scale and minimum of group `sub` of a block: with two levels the products, which f32 holds exactly.
  kir::V scale(const kir::V& block, const kir::V& sub) const { return level(block, sub, 0); }
  kir::V min(const kir::V& block, const kir::V& sub) const { return level(block, sub, 1); }

 private:
  kir::V word(const kir::V& block, const kir::V& index) const;
  kir::V level(const kir::V& block, const kir::V& sub, int which) const;

  Packed f_;
  kir::Buffer words_;
  kir::V span_, row_, outer_[2];
};

// The tiles that this room's kernels read, best first.
OrRefuse<std::vector<Layout>> packed_layouts(const TensorType& type);
std::vector<Layout> float_layouts(const TensorType& type);

}  // namespace tern::kernels
