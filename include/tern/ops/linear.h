// Products over contracted axes.
#pragma once

#include <cstdint>
#include <vector>

#include "tern/graph.h"

namespace tern {

struct DotAxes {  // axes counted from the front; pairs stand at equal places of the two lists
  std::vector<int64_t> lhs_contract, rhs_contract, lhs_batch, rhs_batch;
};
// How finely a kernel may round the left side where it meets a quantised weight in integers: to 8 bits (normal) or 16
// (high), with a scale for each 32 values. A session compiled `precise` rounds neither.
enum class Precision : uint8_t { normal, high };
// Result axes: batch, free axes of lhs, free axes of rhs. Two floats give lhs's type and are summed in f32 or better
// (f64 goes with f64 only); integers of at most 32 bits are summed exactly in i32, equal wider integers in themselves,
// both wrap. rhs may be a quantised weight contracted along its last axis.
Value dot_general(Builder& b, Value lhs, Value rhs, DotAxes axes, Precision precision = Precision::normal);

// NumPy's matmul: x [.., M, K] by y [.., K, N] gives [.., M, N], leading axes broadcast together; a vector on either
// side takes part as one row or one column.
Value matmul(Builder& b, Value x, Value y);
// x [.., K] by a weight as files store it, w [N, K] (any float type or block format), gives [.., N]; bias [N] is added.
Value linear(Builder& b, Value x, Value w, Value bias = {}, Precision precision = Precision::normal);

}  // namespace tern
