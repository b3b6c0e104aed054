// Checks that the type rules of several ops share, so that they read and complain alike.
#pragma once

#include <string>
#include <vector>

#include "graph/op.h"

namespace tern {

using Types = Result<std::vector<TensorType>>;

inline Types one(DType dtype, Shape shape) { return std::vector<TensorType>{{dtype, std::move(shape), nullptr}}; }

std::string text_of(const InferCtx& ctx, size_t input);  // "operand 1 is f32[T, 576]"
// The operand is not quantised: only dot_general and gather read blocks.
Status dense(const InferCtx& ctx, size_t input);
Status all_dense(const InferCtx& ctx);
Status floats(const InferCtx& ctx, size_t input);    // and dense
Status integers(const InferCtx& ctx, size_t input);  // and dense: an index
Status want_dtype(const InferCtx& ctx, size_t input, DType dtype);

// 0 <= axis < rank. Nodes hold axes counted from the front; the builder functions turn negative ones.
Result<size_t> front_axis(const InferCtx& ctx, int64_t axis, size_t rank);
// Distinct axes of the rank, in the order written.
Result<std::vector<size_t>> front_axes(const InferCtx& ctx, const std::vector<int64_t>& axes, size_t rank);

// a <= b: proved, or a guard, or an error with both sides.
Status at_most(InferCtx& ctx, Dim a, Dim b, std::string_view what);
// Extents that a node was given are not negative: proved, or guards.
Status extents(InferCtx& ctx, const Shape& shape);
// The shapes are the same, axis by axis.
Status same_shape(InferCtx& ctx, const Shape& a, const Shape& b, std::string_view what);

Dim product(DimTable& dims, const Shape& shape, size_t first, size_t end);
inline Dim product(DimTable& dims, const Shape& shape) { return product(dims, shape, 0, shape.size()); }
// Strides of a dense row-major value.
std::vector<Dim> dense_strides(DimTable& dims, const Shape& shape);
bool is_one(Dim dim);

}  // namespace tern
