#include "program/layouts/rows.h"

namespace tern {
namespace {

OrRefuse<Dim> row_bytes(const TensorType& type, Tile tile) {
  if (type.format != nullptr || !is_float(type.dtype)) return refuse("int8 activation blocks hold float values");
  TERN_ACCEPT(const int64_t k, layouts::columns(type));
  if (k % 32 != 0 || k == 0) return refuse("k = " + std::to_string(k) + ", wants a multiple of 32");
  return Dim(k / 32 * (tile[0] != 0 ? 76 : 44));  // 32 codes, an f32 scale, two i32 sums; 32 second codes
}

OrRefuse<Dim> bytes(DimTable& dims, const TensorType& type, Tile tile) {
  TERN_ACCEPT(const Dim row, row_bytes(type, tile));
  return dims.mul(layouts::rows(dims, type), row);
}
OrRefuse<Dim> unit_bytes(DimTable&, const TensorType& type, Tile tile) { return row_bytes(type, tile); }

}  // namespace

const LayoutDef kActInt8 = {"act_int8", bytes, nullptr, 0, [](Tile) -> uint16_t { return 1; }, unit_bytes};

}  // namespace tern
