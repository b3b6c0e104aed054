// What decompositions and builder functions share.
#pragma once

#include <vector>

#include "tern/graph.h"

namespace tern {

// What floats are computed in where sums are taken: f32 for all narrower ones.
DType compute_type(DType dtype);
Value compute_cast(Builder& b, Value x);
// The values, or the builder's error.
Result<std::vector<Value>> take(Builder& b, std::vector<Value> values);
// Axis from the front; an axis outside sticks to the builder as an error of `what`.
int64_t from_front(Builder& b, std::string_view what, int64_t axis, size_t rank);
std::vector<int64_t> from_front(Builder& b, std::string_view what, std::vector<int64_t> axes, size_t rank);
Value constant_of(Builder& b, const std::vector<double>& values, std::vector<int64_t> shape);
Value constant_of(Builder& b, const std::vector<float>& values, std::vector<int64_t> shape);
Value constant_of(Builder& b, const std::vector<uint32_t>& values, std::vector<int64_t> shape);

}  // namespace tern
