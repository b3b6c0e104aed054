#include "ops/common/decompose.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

AxisList axes_of(Builder& b, Value x, AxisList axes) {
  const size_t rank = b.type(x).shape.size();
  if (axes.empty()) {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
    return axes;
  }
  return from_front(b, "reduce", std::move(axes), rank);
}

Value reduce(Builder& b, const char* kind, Value x, AxisList axes, bool keepdims) {
  if (b.failed()) return {};
  return b.op("reduce", {x}, {std::string(kind), axes_of(b, x, std::move(axes)), keepdims});
}

Value arg_reduce(Builder& b, bool largest, Value x, int axis, bool keepdims, DType dtype) {
  if (b.failed()) return {};
  return b.op("arg_reduce", {x}, {largest, from_front(b, "arg_reduce", axis, b.type(x).shape.size()), keepdims, dtype});
}

}  // namespace

Value reduce_sum(Builder& b, Value x, AxisList axes, bool keepdims) {
  return reduce(b, "sum", x, std::move(axes), keepdims);
}
Value reduce_prod(Builder& b, Value x, AxisList axes, bool keepdims) {
  return reduce(b, "prod", x, std::move(axes), keepdims);
}
Value reduce_max(Builder& b, Value x, AxisList axes, bool keepdims) {
  return reduce(b, "max", x, std::move(axes), keepdims);
}
Value reduce_min(Builder& b, Value x, AxisList axes, bool keepdims) {
  return reduce(b, "min", x, std::move(axes), keepdims);
}
Value reduce_any(Builder& b, Value x, AxisList axes, bool keepdims) {
  return reduce(b, "any", x, std::move(axes), keepdims);
}
Value reduce_all(Builder& b, Value x, AxisList axes, bool keepdims) {
  return reduce(b, "all", x, std::move(axes), keepdims);
}
Value mean(Builder& b, Value x, AxisList axes, bool keepdims) {
  if (b.failed()) return {};
  return b.op("mean", {x}, {axes_of(b, x, std::move(axes)), keepdims});
}
Value cumsum(Builder& b, Value x, int axis) {
  if (b.failed()) return {};
  const auto rank = static_cast<int>(b.type(x).shape.size());
  const auto at = static_cast<int>(from_front(b, "cumsum", axis, static_cast<size_t>(rank)));
  if (b.failed() || at == rank - 1) return b.op("cumsum", {x});
  return swap_axes(b, b.op("cumsum", {swap_axes(b, x, at, rank - 1)}), at, rank - 1);
}
Value argmax(Builder& b, Value x, int axis, bool keepdims, DType dtype) {
  return arg_reduce(b, true, x, axis, keepdims, dtype);
}
Value argmin(Builder& b, Value x, int axis, bool keepdims, DType dtype) {
  return arg_reduce(b, false, x, axis, keepdims, dtype);
}

}  // namespace tern
