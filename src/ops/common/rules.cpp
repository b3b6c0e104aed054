#include "ops/common/rules.h"

#include "graph/text/text.h"

namespace tern {

std::string text_of(const InferCtx& ctx, size_t input) {
  return "operand " + std::to_string(input) + " is " + type_text(ctx.dims, ctx.in[input]);
}

Status dense(const InferCtx& ctx, size_t input) {
  if (!ctx.in[input].format) return ok();
  return ctx.error(text_of(ctx, input) + ", blocks are read by dot_general and gather only");
}

Status all_dense(const InferCtx& ctx) {
  for (size_t i = 0; i < ctx.in.size(); ++i) TERN_OK(dense(ctx, i));
  return ok();
}

Status floats(const InferCtx& ctx, size_t input) {
  TERN_OK(dense(ctx, input));
  if (is_float(ctx.in[input].dtype)) return ok();
  return ctx.error(text_of(ctx, input) + ", wants floats");
}

Status integers(const InferCtx& ctx, size_t input) {
  TERN_OK(dense(ctx, input));
  if (is_int(ctx.in[input].dtype)) return ok();
  return ctx.error(text_of(ctx, input) + ", wants integers");
}

Status want_dtype(const InferCtx& ctx, size_t input, DType dtype) {
  TERN_OK(dense(ctx, input));
  if (ctx.in[input].dtype == dtype) return ok();
  return ctx.error(text_of(ctx, input) + ", wants " + std::string(dtype_name(dtype)));
}

Result<size_t> front_axis(const InferCtx& ctx, int64_t axis, size_t rank) {
  if (axis >= 0 && axis < static_cast<int64_t>(rank)) return static_cast<size_t>(axis);
  return ctx.error("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank) +
                   (axis < 0 ? " (a node counts axes from the front)" : ""));
}

Result<std::vector<size_t>> front_axes(const InferCtx& ctx, const std::vector<int64_t>& axes, size_t rank) {
  std::vector<size_t> out;
  std::vector<bool> seen(rank);
  for (int64_t a : axes) {
    TERN_TRY(const size_t axis, front_axis(ctx, a, rank));
    if (seen[axis]) return ctx.error("axis " + std::to_string(axis) + " is named twice");
    seen[axis] = true;
    out.push_back(axis);
  }
  return out;
}

Status at_most(InferCtx& ctx, Dim a, Dim b, std::string_view what) {
  const auto [low, high] = ctx.dims.range(ctx.dims.sub(b, a));
  if (low >= 0) return ok();
  if (high < 0) return ctx.error(std::string(what) + ": " + ctx.dims.text(a) + " is more than " + ctx.dims.text(b));
  return ctx.same(ctx.dims.maximum(a, b), b, what);
}

Status extents(InferCtx& ctx, const Shape& shape) {
  for (size_t i = 0; i < shape.size(); ++i)
    TERN_OK(at_most(ctx, 0, shape[i], "axis " + std::to_string(i) + ", the extent is not negative"));
  return ok();
}

Status same_shape(InferCtx& ctx, const Shape& a, const Shape& b, std::string_view what) {
  if (a.size() != b.size()) {
    return ctx.error(std::string(what) + ": " + shape_text(ctx.dims, a) + " and " + shape_text(ctx.dims, b) +
                     " differ in rank");
  }
  for (size_t i = 0; i < a.size(); ++i)
    TERN_OK(ctx.same(a[i], b[i], std::string(what) + ", axis " + std::to_string(i)));
  return ok();
}

Dim product(DimTable& dims, const Shape& shape, size_t first, size_t end) {
  Dim n = 1;
  for (size_t i = first; i < end; ++i) n = dims.mul(n, shape[i]);
  return n;
}

std::vector<Dim> dense_strides(DimTable& dims, const Shape& shape) {
  std::vector<Dim> stride(shape.size());
  Dim step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    stride[i] = step;
    step = dims.mul(step, shape[i]);
  }
  return stride;
}

bool is_one(Dim dim) { return dim.constant() == 1; }

}  // namespace tern
