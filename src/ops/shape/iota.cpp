// iota: the index along an axis. dim: a dim as a scalar. dims: several as a vector, which is how a shape is a value.
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kIotaAttrs[] = {{.name = "shape", .kind = AttrKind::shape},
                                   {.name = "axis", .kind = AttrKind::integer},
                                   {.name = "dtype", .kind = AttrKind::dtype, .optional = true, .text = "i32"}};
constexpr AttrSpec kDimsAttrs[] = {{.name = "values", .kind = AttrKind::shape},
                                   {.name = "dtype", .kind = AttrKind::dtype, .optional = true, .text = "i64"}};
constexpr AttrSpec kDimAttrs[] = {{.name = "value", .kind = AttrKind::dim},
                                  {.name = "dtype", .kind = AttrKind::dtype, .optional = true, .text = "i64"}};

Status number_type(InferCtx& ctx, DType dtype) {
  if (is_float(dtype) || is_int(dtype)) return ok();
  return ctx.error("makes floats or integers, not " + std::string(dtype_name(dtype)));
}

Types infer_iota(InferCtx& ctx) {
  TERN_OK(number_type(ctx, ctx.attr<DType>(2)));
  TERN_OK(front_axis(ctx, ctx.attr<int64_t>(1), ctx.attr<Shape>(0).size()));
  TERN_OK(extents(ctx, ctx.attr<Shape>(0)));
  return one(ctx.attr<DType>(2), ctx.attr<Shape>(0));
}

Types infer_dim(InferCtx& ctx) {
  TERN_OK(number_type(ctx, ctx.attr<DType>(1)));
  return one(ctx.attr<DType>(1), {});
}

Types infer_dims(InferCtx& ctx) {
  TERN_OK(number_type(ctx, ctx.attr<DType>(1)));
  return one(ctx.attr<DType>(1), {static_cast<int64_t>(ctx.attr<Shape>(0).size())});
}

OrRefuse<Contents> dim_contents(ContentsCtx& ctx) { return Contents{attr<Dim>(ctx.node, 0)}; }
OrRefuse<Contents> dims_contents(ContentsCtx& ctx) { return attr<Shape>(ctx.node, 0); }

// Integers wrap, floats round: an index of f16 above 2048 is the nearest one.
void put(RefTensor& out, int64_t n, int64_t value) {
  if (out.i.empty())
    out.f[static_cast<size_t>(n)] = round_to(out.dtype, static_cast<double>(value));
  else
    out.i[static_cast<size_t>(n)] = wrap_to(out.dtype, value);
}

Status reference_iota(const Node& node, RefTensors& r) {
  Extents stride(r.out[0].shape.size(), 0);
  stride[static_cast<size_t>(attr<int64_t>(node, 1))] = 1;
  const Extents shape = r.out[0].shape;
  walk(shape, 0, stride, [&](int64_t n, int64_t index) { put(r.out[0], n, index); });
  return ok();
}

Status reference_dim(const Node& node, RefTensors& r) {
  TERN_TRY(const int64_t v, number(r, attr<Dim>(node, 0)));
  put(r.out[0], 0, v);
  return ok();
}

Status reference_dims(const Node& node, RefTensors& r) {
  const Shape& values = attr<Shape>(node, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    TERN_TRY(const int64_t v, number(r, values[i]));
    put(r.out[0], static_cast<int64_t>(i), v);
  }
  return ok();
}

}  // namespace

constinit const OpDef kIotaOp{
    .name = "iota", .min_in = 0, .max_in = 0, .attrs = kIotaAttrs, .infer = infer_iota, .reference = reference_iota};
constinit const OpDef kDimValueOp{.name = "dim",
                                  .min_in = 0,
                                  .max_in = 0,
                                  .attrs = kDimAttrs,
                                  .infer = infer_dim,
                                  .reference = reference_dim,
                                  .contents = dim_contents};
constinit const OpDef kDimsOp{.name = "dims",
                              .min_in = 0,
                              .max_in = 0,
                              .attrs = kDimsAttrs,
                              .infer = infer_dims,
                              .reference = reference_dims,
                              .contents = dims_contents};

}  // namespace tern
