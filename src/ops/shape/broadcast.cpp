// broadcast: axis i of the operand becomes axis axes[i] of the result; an extent of the constant 1 is repeated.
#include "graph/text/text.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "shape", .kind = AttrKind::shape}, {.name = "axes", .kind = AttrKind::ints}};

Types infer(InferCtx& ctx) {
  TERN_OK(dense(ctx, 0));
  const Shape &shape = ctx.attr<Shape>(0), &from = ctx.in[0].shape;
  TERN_TRY(const auto axes, front_axes(ctx, ctx.attr<std::vector<int64_t>>(1), shape.size()));
  if (axes.size() != from.size()) {
    return ctx.error(text_of(ctx, 0) + ", " + std::to_string(axes.size()) + " axes are named");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (i && axes[i] < axes[i - 1]) return ctx.error("axes must ascend, transpose reorders");
    if (is_one(from[i])) continue;
    const Dim to = shape[axes[i]];
    if (from[i].is_expr() && is_one(to) && ctx.dims.equal(from[i], to) != true) {
      return ctx.error("axis " + std::to_string(i) + " is " + ctx.dims.text(from[i]) + " and cannot become 1");
    }
    TERN_OK(ctx.same(from[i], to, "axis " + std::to_string(i) + " (only a constant 1 is repeated)"));
  }
  TERN_OK(extents(ctx, shape));
  return one(ctx.in[0].dtype, shape);
}

OrRefuse<IndexMap> view(DimTable&, const Node& node, const TensorType& from, const IndexMap& in) {
  IndexMap out{in.offset, std::vector<Dim>(attr<Shape>(node, 0).size(), 0)};
  const auto& axes = attr<std::vector<int64_t>>(node, 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!is_one(from.shape[i])) out.stride[static_cast<size_t>(axes[i])] = in.stride[i];
  }
  return out;
}

Status reference(const Node& node, RefTensors& r) {
  const auto& axes = attr<std::vector<int64_t>>(node, 1);
  const Extents from = strides_of(r.in[0]->shape);
  Extents stride(r.out[0].shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (r.in[0]->shape[i] != 1) stride[static_cast<size_t>(axes[i])] = from[i];
  }
  read_through(*r.in[0], 0, stride, r.out[0]);
  return ok();
}

}  // namespace

constinit const OpDef kBroadcastOp{.name = "broadcast",
                                   .min_in = 1,
                                   .max_in = 1,
                                   .attrs = kAttrs,
                                   .view = view,
                                   .infer = infer,
                                   .reference = reference,
                                   .moves = OpDef::Moves::first};

}  // namespace tern
