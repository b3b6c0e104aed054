// transpose: axis i of the result is axis perm[i] of the operand.
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "perm", .kind = AttrKind::ints}};

Types infer(InferCtx& ctx) {
  TERN_OK(dense(ctx, 0));
  const Shape& from = ctx.in[0].shape;
  TERN_TRY(const auto perm, front_axes(ctx, ctx.attr<std::vector<int64_t>>(0), from.size()));
  if (perm.size() != from.size())
    return ctx.error(text_of(ctx, 0) + ", " + std::to_string(perm.size()) + " axes are named");
  Shape shape;
  for (size_t axis : perm) shape.push_back(from[axis]);
  return one(ctx.in[0].dtype, std::move(shape));
}

OrRefuse<IndexMap> view(DimTable&, const Node& node, const TensorType&, const IndexMap& in) {
  IndexMap out{in.offset, {}};
  for (int64_t axis : attr<std::vector<int64_t>>(node, 0)) out.stride.push_back(in.stride[static_cast<size_t>(axis)]);
  return out;
}

Status reference(const Node& node, RefTensors& r) {
  const Extents from = strides_of(r.in[0]->shape);
  Extents stride;
  for (int64_t axis : attr<std::vector<int64_t>>(node, 0)) stride.push_back(from[static_cast<size_t>(axis)]);
  read_through(*r.in[0], 0, stride, r.out[0]);
  return ok();
}

}  // namespace

constinit const OpDef kTransposeOp{.name = "transpose",
                                   .min_in = 1,
                                   .max_in = 1,
                                   .attrs = kAttrs,
                                   .view = view,
                                   .infer = infer,
                                   .reference = reference,
                                   .moves = OpDef::Moves::first};

}  // namespace tern
