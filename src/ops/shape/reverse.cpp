// reverse: the named axes run backwards.
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "axes", .kind = AttrKind::ints}};

Types infer(InferCtx& ctx) {
  TERN_OK(dense(ctx, 0));
  TERN_OK(front_axes(ctx, ctx.attr<std::vector<int64_t>>(0), ctx.in[0].shape.size()));
  return one(ctx.in[0].dtype, ctx.in[0].shape);
}

OrRefuse<IndexMap> view(DimTable& dims, const Node& node, const TensorType& from, const IndexMap& in) {
  IndexMap out = in;
  for (int64_t a : attr<std::vector<int64_t>>(node, 0)) {
    const auto axis = static_cast<size_t>(a);
    out.offset = dims.add(out.offset, dims.mul(in.stride[axis], dims.sub(from.shape[axis], 1)));
    out.stride[axis] = dims.mul(in.stride[axis], -1);
  }
  return out;
}

Status reference(const Node& node, RefTensors& r) {
  Extents stride = strides_of(r.in[0]->shape);
  int64_t offset = 0;
  for (int64_t a : attr<std::vector<int64_t>>(node, 0)) {
    const auto axis = static_cast<size_t>(a);
    offset += stride[axis] * (r.in[0]->shape[axis] - 1);
    stride[axis] = -stride[axis];
  }
  read_through(*r.in[0], offset, stride, r.out[0]);
  return ok();
}

}  // namespace

constinit const OpDef kReverseOp{.name = "reverse",
                                 .min_in = 1,
                                 .max_in = 1,
                                 .attrs = kAttrs,
                                 .view = view,
                                 .infer = infer,
                                 .reference = reference,
                                 .moves = OpDef::Moves::first};

}  // namespace tern
