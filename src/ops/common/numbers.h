// What the reference evaluations share: concrete shapes, strides, and moving elements of any dtype.
#pragma once

#include <functional>
#include <vector>

#include "graph/op.h"
#include "graph/reference.h"

namespace tern {

using Extents = std::vector<int64_t>;

template <class T>
const T& attr(const Node& node, size_t i) {
  return std::get<T>(node.attrs[i]);
}

Result<int64_t> number(const RefTensors& r, Dim dim);
Result<Extents> numbers(const RefTensors& r, const Shape& shape);
int64_t count(const Extents& shape, size_t first, size_t end);
inline int64_t count(const Extents& shape) { return count(shape, 0, shape.size()); }
Extents strides_of(const Extents& shape);

// Calls f(n, index) for n = 0, 1, ... over the shape in row-major order, index = offset + sum(stride * axis).
template <class F>
void walk(const Extents& shape, int64_t offset, const Extents& stride, F&& f) {
  const int64_t total = count(shape);
  Extents at(shape.size(), 0);
  int64_t index = offset;
  for (int64_t n = 0; n < total; ++n) {
    f(n, index);
    for (size_t a = shape.size(); a-- > 0;) {
      index += stride[a];
      if (++at[a] < shape[a]) break;
      index -= stride[a] * shape[a];
      at[a] = 0;
    }
  }
}

// Element `from` of `in` to element `to` of `out`, both of one dtype.
inline void move_element(const RefTensor& in, int64_t from, RefTensor& out, int64_t to) {
  const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
  if (!in.i.empty()) {
    out.i[t] = in.i[f];
  } else if (is_complex(in.dtype)) {
    out.f[2 * t] = in.f[2 * f];
    out.f[2 * t + 1] = in.f[2 * f + 1];
  } else {
    out.f[t] = in.f[f];
  }
}

// out[n] = in[offset + sum(stride * axis)] over out's shape.
void read_through(const RefTensor& in, int64_t offset, const Extents& stride, RefTensor& out);

// The number that `from` becomes as a `to`: the same type gives the number itself; to floats it is rounded unless every
// value of the source type exists in the target; floats to integers truncate and saturate, NaN gives 0; integers wrap;
// to bool: not 0.
void cast_element(const RefTensor& in, int64_t from, RefTensor& out, int64_t to);

}  // namespace tern
