#include "tern/tensor.h"

namespace tern {
namespace {

std::string shape_text(std::span<const int64_t> shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

Error overflow(std::span<const int64_t> shape) {
  return make_error(Code::limit, "a tensor of shape " + shape_text(shape) + " has more bytes than 64 bits can count");
}

}  // namespace

Result<uint64_t> dense_bytes(DType dtype, const Format* format, std::span<const int64_t> shape) {
  for (int64_t extent : shape) {
    if (extent < 0) return make_error(Code::invalid, "shape " + shape_text(shape) + " has a negative extent");
  }
  const uint64_t unit = format ? format->bytes : dtype_bytes(dtype);
  std::vector<uint64_t> units(shape.begin(), shape.end());
  if (format) {
    // Blocks tile the last axis by columns and the one before it by rows.
    for (size_t back = 0; back < 2; ++back) {
      const uint64_t block = format->block[1 - back];
      if (block == 1) continue;
      if (shape.size() <= back) {
        return make_error(Code::invalid,
                          "shape " + shape_text(shape) + " has no axis for the blocks of " + std::string(format->name));
      }
      uint64_t& extent = units[shape.size() - 1 - back];
      if (extent % block != 0) {
        return make_error(Code::invalid, "shape " + shape_text(shape) + ": axis " +
                                             std::to_string(shape.size() - 1 - back) + " is no multiple of " +
                                             std::to_string(block) + ", the block of " + std::string(format->name));
      }
      extent /= block;
    }
  }
  for (uint64_t extent : units) {
    if (extent == 0) return uint64_t{0};
  }
  uint64_t bytes = unit;
  for (uint64_t extent : units) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return overflow(shape);
  }
  // Offsets are signed in places: half of the range is the limit.
  if (bytes > static_cast<uint64_t>(INT64_MAX)) return overflow(shape);
  return bytes;
}

}  // namespace tern
