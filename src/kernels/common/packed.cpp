#include "kernels/common/packed.h"

#include <algorithm>

namespace tern::kernels {

OrRefuse<Packed> packed_shape(const TensorType& type, Tile tile) {
  const Format* f = type.format;
  if (!f || (f->cls != CodeClass::packed && f->cls != CodeClass::packed_min))
    return refuse("the weight is no packed integer");
  if (f->block[0] != 1) return refuse("blocks of several rows");
  if (f->scale != DType::f16 && f->scale != DType::f32) return refuse("scales of " + std::string(dtype_name(f->scale)));
  Packed p;
  p.rows = tile[0];
  p.code_bits = f->bits;
  p.bits = tile[1] ? tile[1] : f->bits <= 2 ? f->bits : f->bits <= 4 ? 4u : 8u;
  p.group = std::min<uint32_t>(32, f->group);
  p.groups = 32 / p.group;
  p.has_min = f->cls == CodeClass::packed_min;
  p.zero = p.has_min ? 0 : f->zero;
  p.scale = f->scale == DType::f16 ? kir::f16 : kir::f32;
  p.record_bytes = p.rows * (p.bits * 4 + p.groups * kir::type_bytes(p.scale) * (p.has_min ? 2 : 1));
  if (p.record_bytes % 4 != 0) return refuse("records are no whole words");
  return p;
}

kir::V packed_codes4(const Packed& p, const kir::V& word, uint32_t field) {
  const uint32_t mask = p.bits == 8 ? 0xffffffffu : ((1u << p.bits) - 1) * 0x01010101u;
  return (word >> static_cast<int>(p.bits * field)) & mask;
}

std::vector<Layout> packed_layouts(const TensorType& type, const Caps& caps) {
  std::vector<Layout> out;
  (void)caps;
  for (uint16_t rows : {64}) {
    const Tile tile{rows, 0, 0, 0};
    if (packed_shape(type, tile)) out.push_back({&kPackedTiles, tile});
  }
  return out;
}

std::vector<Layout> float_layouts(const TensorType& type, const Caps& caps) {
  (void)caps;
  if (type.format || (type.dtype != DType::f32 && type.dtype != DType::f16 && type.dtype != DType::bf16)) return {};
  return {{&kFloatTiles, {64, 0, 0, 0}}};
}

}  // namespace tern::kernels
