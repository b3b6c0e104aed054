// Reductions. Axes may count from the end; an empty list means all axes. keepdims leaves extents of 1.
#pragma once

#include <vector>

#include "tern/graph.h"

namespace tern {

using AxisList = std::vector<int64_t>;

// Floats and integers (which wrap). No elements: sum 0, prod 1, max -inf or the type's lowest, min +inf or its highest.
// NaN passes.
Value reduce_sum(Builder& b, Value x, AxisList axes = {}, bool keepdims = false);
Value reduce_prod(Builder& b, Value x, AxisList axes = {}, bool keepdims = false);
Value reduce_max(Builder& b, Value x, AxisList axes = {}, bool keepdims = false);
Value reduce_min(Builder& b, Value x, AxisList axes = {}, bool keepdims = false);
// bool. No elements: any is false, all is true.
Value reduce_any(Builder& b, Value x, AxisList axes = {}, bool keepdims = false);
Value reduce_all(Builder& b, Value x, AxisList axes = {}, bool keepdims = false);
// Floats; f16 and narrower are summed in f32. No elements: NaN.
Value mean(Builder& b, Value x, AxisList axes = {}, bool keepdims = false);
// Each element becomes the sum of those up to it along the axis. Floats of 32 bits and more, integers (which wrap).
Value cumsum(Builder& b, Value x, int axis);
// Index (i32 or i64) of the largest or smallest element along an axis of at least one element; the first NaN wins, else
// the first of equal elements.
Value argmax(Builder& b, Value x, int axis, bool keepdims = false, DType dtype = DType::i32);
Value argmin(Builder& b, Value x, int axis, bool keepdims = false, DType dtype = DType::i32);

}  // namespace tern
