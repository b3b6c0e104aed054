#include <algorithm>

#include "graph/sizes/contents.h"
#include "graph/text/text.h"
#include "ops/common/decompose.h"
#include "ops/common/rules.h"
#include "tern/ops/shape.h"

namespace tern {

Value reshape(Builder& b, Value x, Shape shape) {
  if (b.failed()) return {};
  Dim* left = nullptr;
  Dim rest = 1;
  for (Dim& d : shape) {
    if (d.constant() != -1) {
      rest = b.dims().mul(rest, d);
    } else if (left) {
      b.fail(make_error(Code::invalid, "reshape: two extents are -1"));
      return {};
    } else {
      left = &d;
    }
  }
  if (left) {
    if (rest.constant() == 0) {
      b.fail(make_error(Code::invalid, "reshape: -1 beside an extent of 0 could be anything"));
      return {};
    }
    *left = b.dims().floordiv(product(b.dims(), b.type(x).shape), rest);
  }
  if (shape == b.type(x).shape) return x;
  return b.op("reshape", {x}, {std::move(shape)});
}

Value expand_dims(Builder& b, Value x, int axis) {
  if (b.failed()) return {};
  Shape shape = b.type(x).shape;
  const int64_t at = from_front(b, "expand_dims", axis, shape.size() + 1);
  shape.insert(shape.begin() + at, Dim(1));
  return b.op("reshape", {x}, {std::move(shape)});
}

Value squeeze(Builder& b, Value x, int axis) {
  if (b.failed()) return {};
  Shape shape = b.type(x).shape;
  const int64_t at = from_front(b, "squeeze", axis, shape.size());
  if (b.failed()) return {};
  shape.erase(shape.begin() + at);
  return b.op("reshape", {x}, {std::move(shape)});
}

Value transpose(Builder& b, Value x, std::vector<int64_t> perm) {
  if (b.failed()) return {};
  perm = from_front(b, "transpose", std::move(perm), b.type(x).shape.size());
  if (std::is_sorted(perm.begin(), perm.end()) && perm.size() == b.type(x).shape.size() &&
      std::adjacent_find(perm.begin(), perm.end()) == perm.end())
    return x;
  return b.op("transpose", {x}, {std::move(perm)});
}

Value swap_axes(Builder& b, Value x, int i, int j) {
  if (b.failed()) return {};
  const size_t rank = b.type(x).shape.size();
  const int64_t p = from_front(b, "swap_axes", i, rank), q = from_front(b, "swap_axes", j, rank);
  std::vector<int64_t> perm(rank);
  for (size_t a = 0; a < rank; ++a) perm[a] = static_cast<int64_t>(a);
  if (b.failed()) return {};
  std::swap(perm[static_cast<size_t>(p)], perm[static_cast<size_t>(q)]);
  return transpose(b, x, std::move(perm));
}

Value broadcast(Builder& b, Value x, Shape shape, std::vector<int64_t> axes) {
  if (b.failed()) return {};
  axes = from_front(b, "broadcast", std::move(axes), shape.size());
  return b.op("broadcast", {x}, {std::move(shape), std::move(axes)});
}

Value broadcast_to(Builder& b, Value x, Shape shape) {
  if (b.failed() || b.type(x).shape == shape) return x;
  const size_t rank = b.type(x).shape.size();
  if (rank > shape.size()) {
    b.fail(make_error(Code::invalid, "broadcast_to: " + type_text(b.dims(), b.type(x)) + " has more axes than " +
                                         shape_text(b.dims(), shape)));
    return {};
  }
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(shape.size() - rank + i));
  return b.op("broadcast", {x}, {std::move(shape), std::move(axes)});
}

namespace {

// A bound of a slice as Python reads it: constants count from the end where negative and are cut to [low, high].
Dim bound(DimTable& dims, Dim d, Dim extent, Dim low, Dim high) {
  if (!d.constant()) return d;
  const int64_t c = *d.constant();
  const Dim at = c < 0 ? dims.add(extent, c) : d;
  return dims.minimum(dims.maximum(at, low), high);
}

}  // namespace

Value slice(Builder& b, Value x, int axis, Dim start, Dim limit, int64_t step) {
  if (b.failed()) return {};
  const Shape& shape = b.type(x).shape;
  const auto at = static_cast<size_t>(from_front(b, "slice", axis, shape.size()));
  if (b.failed()) return {};
  DimTable& dims = b.dims();
  const Dim extent = shape[at];
  if (step > 0) {
    start = bound(dims, start, extent, 0, extent);
    limit = limit.constant() == kToEnd ? extent : bound(dims, limit, extent, 0, extent);
    if (start.constant() && limit.constant()) limit = std::max(*start.constant(), *limit.constant());
  } else {
    const Dim last = dims.sub(extent, 1);
    start = bound(dims, start, extent, -1, last);
    limit =
        limit.constant() == kToEnd || limit.constant() == INT64_MIN ? Dim(-1) : bound(dims, limit, extent, -1, last);
    if (start.constant() && limit.constant()) limit = std::min(*start.constant(), *limit.constant());
  }
  Shape starts(shape.size(), 0), limits = shape;
  std::vector<int64_t> steps(shape.size(), 1);
  starts[at] = start;
  limits[at] = limit;
  steps[at] = step;
  if (step == 1 && start.constant() == 0 && limit == extent) return x;
  return b.op("slice", {x}, {std::move(starts), std::move(limits), std::move(steps)});
}

Value reverse(Builder& b, Value x, std::vector<int64_t> axes) {
  if (b.failed()) return {};
  return b.op("reverse", {x}, {from_front(b, "reverse", std::move(axes), b.type(x).shape.size())});
}

Value pad(Builder& b, Value x, Shape low, Shape high, double value, std::vector<int64_t> interior) {
  if (b.failed()) return {};
  return pad(b, x, std::move(low), std::move(high), b.constant(b.type(x).dtype, value), std::move(interior));
}
Value pad(Builder& b, Value x, Shape low, Shape high, Value value, std::vector<int64_t> interior) {
  return b.op("pad", {x, value}, {std::move(low), std::move(high), std::move(interior)});
}

Value concat(Builder& b, std::vector<Value> values, int axis) {
  if (b.failed()) return {};
  if (values.size() == 1) return values[0];
  const size_t rank = values.empty() ? 0 : b.type(values[0]).shape.size();
  return b.op("concat", std::move(values), {from_front(b, "concat", axis, rank)});
}

std::vector<Value> split(Builder& b, Value x, int axis, const Shape& sizes) {
  std::vector<Value> parts;
  if (b.failed()) return std::vector<Value>(sizes.size());
  const Dim extent = b.dim(x, axis);
  Dim at = 0;
  for (Dim size : sizes) {
    const Dim end = b.dims().add(at, size);
    parts.push_back(slice(b, x, axis, at, end));
    at = end;
  }
  if (!b.failed() && b.dims().equal(at, extent) == false)
    b.fail(
        make_error(Code::invalid, "split: pieces of " + b.dims().text(at) + " of an axis of " + b.dims().text(extent)));
  return parts;
}

Value iota(Builder& b, Shape shape, int axis, DType dtype) {
  if (b.failed()) return {};
  const int64_t at = from_front(b, "iota", axis, shape.size());
  return b.op("iota", {}, {std::move(shape), at, dtype});
}

Value dim_value(Builder& b, Dim dim, DType dtype) { return b.op("dim", {}, {dim, dtype}); }

Value shape_of(Builder& b, Value x, DType dtype) {
  if (b.failed()) return {};
  return b.op("dims", {}, {b.type(x).shape, dtype});
}

Value size_of(Builder& b, Value x, DType dtype) {
  if (b.failed()) return {};
  return dim_value(b, product(b.dims(), b.type(x).shape), dtype);
}

Shape sizes(Builder& b, Value v, std::string_view reader) {
  if (b.failed()) return {};
  if (!b.graph().holds(v)) {
    b.fail(make_error(Code::invalid, std::string(reader) + ": the sizes are no value of the graph"));
    return {};
  }
  ContentsOf contents(b.graph());
  const auto& known = contents.of(v);
  if (known) return *known;
  b.fail(make_error(Code::unsupported,
                    std::string(reader) + ": the sizes in " + type_text(b.dims(), b.type(v)) +
                        " are not known while the graph is built: " + known.why() +
                        "; make them of shapes and constants, or make each a symbol that an input's shape or the "
                        "caller binds, or a late_size",
                    node_text(b.graph(), v.node)));
  return {};
}

Dim late_size(Builder& b, Value v, std::string name, int64_t min, int64_t max) {
  if (b.failed()) return 0;
  const std::string base = name;
  for (int n = 2; b.dims().find_symbol(name); ++n) name = base + "_" + std::to_string(n);
  auto size = b.dims().symbol({std::move(name), min, max, 1, true});
  if (!size) {
    b.fail(size.take_error());
    return 0;
  }
  b.op("late", {v}, {*size});
  return *size;
}

Value slice(Builder& b, Value x, const std::vector<int64_t>& axes, Value start, Value limit,
            const std::vector<int64_t>& step) {
  const Shape from = sizes(b, start, "slice"), to = sizes(b, limit, "slice");
  if (b.failed()) return {};
  if (from.size() != axes.size() || to.size() != axes.size() || (!step.empty() && step.size() != axes.size())) {
    b.fail(make_error(Code::invalid, "slice: " + std::to_string(axes.size()) + " axes are named, there are " +
                                         std::to_string(from.size()) + " starts, " + std::to_string(to.size()) +
                                         " limits and " + std::to_string(step.size()) + " steps"));
    return {};
  }
  for (size_t i = 0; i < axes.size(); ++i)
    x = slice(b, x, static_cast<int>(axes[i]), from[i], to[i], step.empty() ? 1 : step[i]);
  return x;
}

}  // namespace tern
