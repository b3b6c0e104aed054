// Views and other movers of elements. Negative axes count from the end. Errors stick to the builder.
//
// Sizes may come as dims or as integer values. A value's contents must be known while the graph is built: it is made of
// sizes (shape_of, size_of, dim_value), constants and integer arithmetic on at most 64 elements. Then it becomes dims
// here, one compilation serves every size, and the arithmetic is dropped unless something else reads it.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "tern/graph.h"

namespace tern {

// The same elements, row-major. One extent may be -1: what is left. Equal element counts are proved or guarded.
Value reshape(Builder& b, Value x, Shape shape);
// An axis of extent 1 before `axis` of the result; without one.
Value expand_dims(Builder& b, Value x, int axis);
Value squeeze(Builder& b, Value x, int axis);
// Axis i of the result is axis perm[i] of x.
Value transpose(Builder& b, Value x, std::vector<int64_t> perm);
Value swap_axes(Builder& b, Value x, int i, int j);

// x to the shape, aligned at the last axis; missing axes and constant extents 1 are repeated.
Value broadcast_to(Builder& b, Value x, Shape shape);
// Axis i of x becomes axis axes[i] of the shape (ascending).
Value broadcast(Builder& b, Value x, Shape shape, std::vector<int64_t> axes);

// Elements start, start + step, ... before limit along one axis. Constants read as in Python: negative ones count from
// the end, what lies outside is cut to the extent. With a negative step the walk goes down; kToEnd runs off the end in
// its direction.
inline constexpr int64_t kToEnd = INT64_MAX;
Value slice(Builder& b, Value x, int axis, Dim start, Dim limit, int64_t step = 1);
Value reverse(Builder& b, Value x, std::vector<int64_t> axes);
// low[i] elements of `value` before and high[i] after axis i (negative: cut), interior[i] between its elements.
Value pad(Builder& b, Value x, Shape low, Shape high, double value = 0, std::vector<int64_t> interior = {});
Value pad(Builder& b, Value x, Shape low, Shape high, Value value, std::vector<int64_t> interior = {});
// One after the other along the axis; the other extents are equal.
Value concat(Builder& b, std::vector<Value> values, int axis);
// Consecutive pieces of the given extents; together they are the axis.
std::vector<Value> split(Builder& b, Value x, int axis, const Shape& sizes);

// The index along the axis, over a shape.
Value iota(Builder& b, Shape shape, int axis, DType dtype = DType::i32);
// A dim as a scalar.
Value dim_value(Builder& b, Dim dim, DType dtype = DType::i64);

// The extents of x as a vector; how many elements it has as a scalar.
Value shape_of(Builder& b, Value x, DType dtype = DType::i64);
Value size_of(Builder& b, Value x, DType dtype = DType::i64);
// The elements of an integer value, row-major, as dims. Where they are not known the builder fails; the error says
// which node stands in the way. `reader`: who asks, for the error.
Shape sizes(Builder& b, Value v, std::string_view reader = "sizes");

// A size known only in mid-run: the i32 or i64 scalar's value, as a symbol of this name (numbered where it is taken). A
// value outside of [min, max] ends the run with an error. Memory is planned for max.
Dim late_size(Builder& b, Value v, std::string name, int64_t min, int64_t max);

// The same with sizes from values. A vector, or a scalar for one size; negative numbers mean what they mean above.
// (Templates, so that {2, 3} stays a Shape.)
Value reshape(Builder& b, Value x, std::same_as<Value> auto shape) { return reshape(b, x, sizes(b, shape, "reshape")); }
Value broadcast_to(Builder& b, Value x, std::same_as<Value> auto shape) {
  return broadcast_to(b, x, sizes(b, shape, "broadcast_to"));
}
Value iota(Builder& b, std::same_as<Value> auto shape, int axis, DType dtype = DType::i32) {
  return iota(b, sizes(b, shape, "iota"), axis, dtype);
}
Value pad(Builder& b, Value x, std::same_as<Value> auto low, std::same_as<Value> auto high, double value = 0) {
  return pad(b, x, sizes(b, low, "pad"), sizes(b, high, "pad"), value);
}
// start[i] up to limit[i] in steps of step[i] (none: 1) along axis axes[i].
Value slice(Builder& b, Value x, const std::vector<int64_t>& axes, Value start, Value limit,
            const std::vector<int64_t>& step = {});

}  // namespace tern
