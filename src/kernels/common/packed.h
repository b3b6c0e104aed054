// Packed tiles (kPackedTiles) as kernels read them.
#pragma once

#include "kernels/common/launch.h"

namespace tern::kernels {

// Geometry of one weight's records. Indices count words (codes) or elements of the scale type (scales, mins).
struct Packed {
  uint32_t rows = 0;       // of a tile, R
  uint32_t bits = 0;       // stored per code, B
  uint32_t code_bits = 0;  // of the format
  uint32_t groups = 1;     // scales of a block, S
  uint32_t group = 32;     // columns of a scale, at most 32
  bool has_min = false;
  int32_t zero = 0;
  kir::Type scale = kir::f16;
  uint32_t record_bytes = 0;

  uint32_t record_words() const { return record_bytes / 4; }
  uint32_t record_scales() const { return record_bytes / kir::type_bytes(scale); }
  uint32_t first_scale() const { return rows * bits * 4 / kir::type_bytes(scale); }
  uint32_t first_min() const { return first_scale() + groups * rows; }
  uint32_t fields() const { return 8 / bits; }  // groups of four codes in a word
};

// Refuses formats and tiles that kPackedTiles does not hold.
OrRefuse<Packed> packed_shape(const TensorType& type, Tile tile);
// Code word -> four codes, byte by byte (field j), ready for dot4.
kir::V packed_codes4(const Packed& p, const kir::V& word, uint32_t field);

// The tiles that this room's kernels read on a device, best first.
std::vector<Layout> packed_layouts(const TensorType& type, const Caps& caps);
std::vector<Layout> float_layouts(const TensorType& type, const Caps& caps);

}  // namespace tern::kernels
