// Types of values and views of concrete tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tern/dtype.h"
#include "tern/format.h"
#include "tern/shape.h"

namespace tern {

// Row-major. Where format is set the value is quantised: dtype is what it decodes to (f32), the last axis is cut into
// blocks.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  const Format* format = nullptr;
  bool operator==(const TensorType&) const = default;
};

// Bytes of a dense row-major (or block-interleaved) tensor; an error on overflow or a last axis that is no multiple of
// the block.
Result<uint64_t> dense_bytes(DType dtype, const Format* format, std::span<const int64_t> shape);

// A look at somebody's memory: dense, row-major, in the declared type.
struct TensorView {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  const Format* format = nullptr;
};
struct MutableView {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::span<std::byte> data;
};

// Views of ordinary arrays: view(std::span<const float>(v), {2, 3}).
template <class T>
inline constexpr DType dtype_of = [] {
  // NOLINTBEGIN(bugprone-branch-clone): in an instance, the branches that are not taken look alike
  if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::i16;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::i8;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return DType::u64;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return DType::u32;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::u16;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::u8;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::boolean;
  // NOLINTEND(bugprone-branch-clone)
}();
template <class T>
TensorView view(std::span<const T> data, std::vector<int64_t> shape) {
  return {dtype_of<T>, std::move(shape), std::as_bytes(data), nullptr};
}
template <class T>
MutableView mutable_view(std::span<T> data, std::vector<int64_t> shape) {
  return {dtype_of<T>, std::move(shape), std::as_writable_bytes(data)};
}

// A concrete constant inside a graph: dense bytes, shared, never changed.
struct Const {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::shared_ptr<const std::vector<std::byte>> data;
  bool operator==(const Const& o) const {
    return dtype == o.dtype && shape == o.shape && (data == o.data || (data && o.data && *data == *o.data));
  }
};

}  // namespace tern
