#include <algorithm>
#include <cstring>

#include "program/layouts/rows.h"

namespace tern {
namespace {

OrRefuse<Dim> unit_bytes(DimTable&, const TensorType& type, Tile tile) {
  if (type.format != nullptr && type.format->cls != CodeClass::flt) return refuse("float tiles hold plain floats");
  if (type.dtype != DType::f32 && type.dtype != DType::f16 && type.dtype != DType::bf16)
    return refuse("float tiles hold f32, f16 or bf16");
  if (tile[0] == 0 || tile[0] % 2 != 0) return refuse("a tile has an even number of rows");
  TERN_ACCEPT(const int64_t k, layouts::columns(type));
  return Dim(k * tile[0] * dtype_bytes(type.dtype));
}

OrRefuse<Dim> bytes(DimTable& dims, const TensorType& type, Tile tile) {
  TERN_ACCEPT(const Dim unit, unit_bytes(dims, type, tile));
  return dims.mul(dims.ceildiv(layouts::rows(dims, type), tile[0]), unit);
}

// Transposes R rows of K elements to [K][R]; rows past the end are zero.
template <class T>
void transpose_tile(const std::byte* from, int64_t k, int64_t rows, int64_t tile_rows, std::byte* out) {
  constexpr int64_t kBlock = 16;  // columns that stay in L1 while all rows are read
  for (int64_t c0 = 0; c0 < k; c0 += kBlock) {
    const int64_t c1 = std::min(k, c0 + kBlock);
    for (int64_t r = 0; r < tile_rows; ++r) {
      for (int64_t c = c0; c < c1; ++c) {
        T value{};
        if (r < rows) std::memcpy(&value, from + (r * k + c) * static_cast<int64_t>(sizeof(T)), sizeof(T));
        std::memcpy(out + (c * tile_rows + r) * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
      }
    }
  }
}

Status pack(const TensorType& type, const Planes& planes, Tile tile, int64_t row, int64_t rows, std::byte* out) {
  DimTable none;
  const auto unit = unit_bytes(none, type, tile);
  if (!unit) return make_error(Code::invalid, unit.why());
  const int64_t k = *layouts::columns(type), size = dtype_bytes(type.dtype), r = tile[0],
                all = layouts::constant_rows(type);
  if (planes.p[0].size() < static_cast<uint64_t>((row + rows) * k * size))
    return make_error(Code::invalid, "a value has fewer bytes than its type says");
  const int64_t end = std::min(all, row + rows);
  for (int64_t first = row; first < end; first += r) {
    const std::byte* from = planes.p[0].data() + first * k * size;
    std::byte* to = out + first / r * *unit->constant();
    (size == 4 ? transpose_tile<uint32_t> : transpose_tile<uint16_t>)(from, k, std::min(r, end - first), r, to);
  }
  return ok();
}

}  // namespace

const LayoutDef kFloatTiles = {"float_tiles", bytes, pack, 0, [](Tile tile) { return tile[0]; }, unit_bytes};

}  // namespace tern
