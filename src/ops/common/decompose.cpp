#include "ops/common/decompose.h"

#include <cstring>

#include "tern/ops/elementwise.h"

namespace tern {

DType compute_type(DType dtype) { return is_float(dtype) && dtype_bytes(dtype) < 4 ? DType::f32 : dtype; }

Value compute_cast(Builder& b, Value x) { return cast(b, x, compute_type(b.type(x).dtype)); }

Result<std::vector<Value>> take(Builder& b, std::vector<Value> values) {
  if (b.failed()) return Error(*b.error());
  return values;
}

int64_t from_front(Builder& b, std::string_view what, int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (axis >= -n && axis < n) return axis < 0 ? axis + n : axis;
  b.fail(make_error(Code::invalid, std::string(what) + ": axis " + std::to_string(axis) + " is outside of rank " +
                                       std::to_string(rank)));
  return 0;
}

std::vector<int64_t> from_front(Builder& b, std::string_view what, std::vector<int64_t> axes, size_t rank) {
  for (int64_t& a : axes) a = from_front(b, what, a, rank);
  return axes;
}

namespace {

template <class T>
Value constant_values(Builder& b, DType dtype, const std::vector<T>& values, std::vector<int64_t> shape) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return b.constant(Const{dtype, std::move(shape), std::make_shared<const std::vector<std::byte>>(std::move(bytes))});
}

}  // namespace

Value constant_of(Builder& b, const std::vector<double>& values, std::vector<int64_t> shape) {
  return constant_values(b, DType::f64, values, std::move(shape));
}
Value constant_of(Builder& b, const std::vector<float>& values, std::vector<int64_t> shape) {
  return constant_values(b, DType::f32, values, std::move(shape));
}
Value constant_of(Builder& b, const std::vector<uint32_t>& values, std::vector<int64_t> shape) {
  return constant_values(b, DType::u32, values, std::move(shape));
}

}  // namespace tern
