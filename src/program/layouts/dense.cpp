#include <cstring>

#include "program/layouts/rows.h"

namespace tern {
namespace {

OrRefuse<Dim> row_bytes(const TensorType& type) {
  TERN_ACCEPT(const int64_t k, layouts::columns(type));
  if (type.format == nullptr) return Dim(k * dtype_bytes(type.dtype));
  const int64_t columns = type.format->block[1];
  if (k % columns != 0)
    return refuse("k = " + std::to_string(k) + " is no multiple of the block's " + std::to_string(columns));
  return Dim(k / columns * type.format->bytes);
}

OrRefuse<Dim> bytes(DimTable& dims, const TensorType& type, Tile) {
  if (type.format == nullptr) {
    Dim n = dtype_bytes(type.dtype);
    for (const Dim d : type.shape) n = dims.mul(n, d);
    return layouts::word_aligned(dims, n);
  }
  TERN_ACCEPT(const Dim row, row_bytes(type));
  return layouts::word_aligned(dims, dims.mul(layouts::rows(dims, type), row));
}

Status pack(const TensorType& type, const Planes& planes, Tile, int64_t row, int64_t rows, std::byte* out) {
  const auto one = row_bytes(type);
  if (!one) return make_error(Code::invalid, one.why());
  const auto size = static_cast<uint64_t>(*one->constant());
  const uint64_t first = static_cast<uint64_t>(row) * size, n = static_cast<uint64_t>(rows) * size;
  if (planes.p[0].size() < first + n) return make_error(Code::invalid, "a value has fewer bytes than its type says");
  if (n > 0) std::memcpy(out + first, planes.p[0].data() + first, n);
  return ok();
}

OrRefuse<Dim> unit_bytes(DimTable&, const TensorType& type, Tile) { return row_bytes(type); }

}  // namespace

const LayoutDef kDense = {"dense", bytes, pack, 0, [](Tile) -> uint16_t { return 1; }, unit_bytes};

}  // namespace tern
