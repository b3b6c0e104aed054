#include "program/layouts/rows.h"

namespace tern {
namespace {

OrRefuse<Dim> row_bytes(const TensorType& type) {
  if (type.format != nullptr || !is_float(type.dtype)) return refuse("int8 activation blocks hold float values");
  TERN_ACCEPT(const int64_t k, layouts::columns(type));
  if (k % 32 != 0 || k == 0) return refuse("k = " + std::to_string(k) + ", wants a multiple of 32");
  return Dim(k / 32 * 40);  // 32 codes, an f32 scale, an i32 sum
}

OrRefuse<Dim> bytes(DimTable& dims, const TensorType& type, Tile) {
  TERN_ACCEPT(const Dim row, row_bytes(type));
  return dims.mul(layouts::rows(dims, type), row);
}
OrRefuse<Dim> unit_bytes(DimTable&, const TensorType& type, Tile) { return row_bytes(type); }

}  // namespace

const LayoutDef kActInt8 = {"act_int8", bytes, nullptr, 0, [](Tile) -> uint16_t { return 1; }, unit_bytes};

}  // namespace tern
