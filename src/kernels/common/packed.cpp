#include "kernels/common/packed.h"

#include <algorithm>

namespace tern::kernels {

using kir::V;

OrRefuse<Packed> packed_shape(const TensorType& type, Tile tile) {
  TERN_ACCEPT(const PackedGeometry g, packed_geometry(type, tile));
  const Format& f = *type.format;
  Packed p;
  p.rows = static_cast<uint32_t>(g.rows);
  p.bits = static_cast<uint32_t>(g.bits);
  p.low_bits = static_cast<uint32_t>(g.low_bits());
  p.code_bits = f.bits;
  p.groups = static_cast<uint32_t>(g.groups);
  p.group = 32 / p.groups;
  p.span_blocks = static_cast<uint32_t>(g.span / 32);
  p.has_min = g.has_min;
  p.sub_bits = f.sub_bits;
  p.zero = p.has_min ? 0 : f.zero;
  p.step = f.step;
  if (f.cls == CodeClass::lookup) {
    // Table values are signed bytes; dot4 takes unsigned ones.
    if (f.table.size() != p.table.size())
      return refuse("a table of " + std::to_string(f.table.size()) + " entries, wants 16");
    p.has_table = true, p.zero = 128, p.code_bits = 8;
    for (size_t i = 0; i < p.table.size(); ++i) p.table[i] = static_cast<uint8_t>(f.table[i] + 128);
  }
  p.scale = f.scale == DType::f16 ? kir::f16 : kir::f32;
  p.span_bytes = static_cast<uint32_t>(g.span_bytes);
  p.head_bytes = static_cast<uint32_t>(g.head_bytes);
  p.sub_bytes = static_cast<uint32_t>(g.sub_planes * g.groups * g.rows);
  p.block_bytes = static_cast<uint32_t>(g.block_bytes);
  return p;
}

PackedRow::PackedRow(const Packed& f, const kir::Buffer& words, const V& span, const V& row)
    : f_(f), words_(words), span_(span), row_(row) {
  if (f.sub_bits == 0) return;
  const V at = span_ * (f_.span_bytes / kir::type_bytes(f_.scale)) + row_;
  outer_[0] = words_.as(f_.scale)[at];
  if (f.has_min) outer_[1] = words_.as(f_.scale)[at + f_.rows];
}

V PackedRow::word(const V& block, const V& index) const {
  const V at = span_ * (f_.span_bytes / 4) + (block * (f_.block_bytes / 4) + (f_.head_bytes + f_.sub_bytes) / 4);
  return words_[at + index * f_.rows + row_];
}

V PackedRow::codes4(const V& block, const V& quad) const {
  // A quad's field of a word.
  auto field = [&](const V& word, uint32_t bits) {
    return bits == 8 ? word : word >> (quad % (8 / bits) * bits) & ((1u << bits) - 1) * 0x01010101u;
  };
  const uint32_t low = f_.low_bits, high = f_.bits - low;
  const V index = quad / (8 / low);
  if (f_.has_table) return kir::lookup4(field(word(block, index), low), f_.table);
  if (high == 0) return field(word(block, index), low);
  const uint32_t per_high = low / high;
  const V top = field(word(block, index / per_high * (per_high + 1)), high);
  return field(word(block, index + index / per_high + 1), low) | top << static_cast<int>(low);
}

V PackedRow::level(const V& block, const V& sub, int which) const {
  if (f_.sub_bits == 0) {
    const uint32_t first = which == 0 ? 0 : f_.groups * f_.rows;
    return words_.as(f_.scale)[span_ * (f_.span_bytes / kir::type_bytes(f_.scale)) + (sub * f_.rows + first) + row_];
  }
  const uint32_t plane = which == 0 || f_.sub_bits == 4 ? 0 : f_.groups * f_.rows;
  const V at = span_ * f_.span_bytes + (block * f_.block_bytes + (f_.head_bytes + plane)) + sub * f_.rows + row_;
  V whole = words_.as(kir::i8)[at];
  if (f_.sub_bits == 4) whole = which == 0 ? whole & 15 : whole >> 4 & 15;
  return outer_[which] * kir::cast(kir::f32, whole);
}

OrRefuse<std::vector<Layout>> packed_layouts(const TensorType& type) {
  const Tile tile{64, 0, 0, 0};
  TERN_ACCEPT([[maybe_unused]] const Packed fits, packed_shape(type, tile));
  return std::vector<Layout>{{&kPackedTiles, tile}};
}

std::vector<Layout> float_layouts(const TensorType& type) {
  if (type.format || (type.dtype != DType::f32 && type.dtype != DType::f16 && type.dtype != DType::bf16)) return {};
  return {{&kFloatTiles, {64, 0, 0, 0}}};
}

}  // namespace tern::kernels
