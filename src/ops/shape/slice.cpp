// slice: elements start, start + step, ... before limit, on every axis; with a negative step they go down and limit may
// be -1.
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "start", .kind = AttrKind::shape},
                               {.name = "limit", .kind = AttrKind::shape},
                               {.name = "step", .kind = AttrKind::ints}};

Types infer(InferCtx& ctx) {
  TERN_OK(dense(ctx, 0));
  const Shape &from = ctx.in[0].shape, &start = ctx.attr<Shape>(0), &limit = ctx.attr<Shape>(1);
  const auto& step = ctx.attr<std::vector<int64_t>>(2);
  if (start.size() != from.size() || limit.size() != from.size() || step.size() != from.size())
    return ctx.error(text_of(ctx, 0) + ", start, limit and step want one number an axis");
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    const std::string axis = "axis " + std::to_string(i);
    if (step[i] == 0 || step[i] == INT64_MIN) return ctx.error(axis + ": step " + std::to_string(step[i]));
    if (step[i] > 0) {
      TERN_OK(at_most(ctx, 0, start[i], axis + ", start is not negative"));
      TERN_OK(at_most(ctx, start[i], limit[i], axis + ", start up to limit"));
      TERN_OK(at_most(ctx, limit[i], from[i], axis + ", limit up to the extent"));
      shape.push_back(ctx.dims.ceildiv(ctx.dims.sub(limit[i], start[i]), step[i]));
    } else {
      TERN_OK(at_most(ctx, -1, limit[i], axis + ", limit is at least -1"));
      TERN_OK(at_most(ctx, limit[i], start[i], axis + ", limit up to start"));
      TERN_OK(at_most(ctx, ctx.dims.add(start[i], 1), from[i], axis + ", start within the extent"));
      shape.push_back(ctx.dims.ceildiv(ctx.dims.sub(start[i], limit[i]), -step[i]));
    }
  }
  return one(ctx.in[0].dtype, std::move(shape));
}

OrRefuse<IndexMap> view(DimTable& dims, const Node& node, const TensorType&, const IndexMap& in) {
  IndexMap out = in;
  const Shape& start = attr<Shape>(node, 0);
  for (size_t i = 0; i < start.size(); ++i) {
    out.offset = dims.add(out.offset, dims.mul(start[i], in.stride[i]));
    out.stride[i] = dims.mul(in.stride[i], attr<std::vector<int64_t>>(node, 2)[i]);
  }
  return out;
}

Status reference(const Node& node, RefTensors& r) {
  TERN_TRY(const Extents start, numbers(r, attr<Shape>(node, 0)));
  Extents stride = strides_of(r.in[0]->shape);
  int64_t offset = 0;
  for (size_t i = 0; i < start.size(); ++i) {
    offset += start[i] * stride[i];
    stride[i] *= attr<std::vector<int64_t>>(node, 2)[i];
  }
  read_through(*r.in[0], offset, stride, r.out[0]);
  return ok();
}

}  // namespace

constinit const OpDef kSliceOp{.name = "slice",
                               .min_in = 1,
                               .max_in = 1,
                               .attrs = kAttrs,
                               .view = view,
                               .infer = infer,
                               .reference = reference,
                               .moves = OpDef::Moves::first};

}  // namespace tern
