// concat: operands one after the other along an axis.
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "axis", .kind = AttrKind::integer}};

Types infer(InferCtx& ctx) {
  TERN_OK(all_dense(ctx));
  Shape shape = ctx.in[0].shape;
  TERN_TRY(const size_t axis, front_axis(ctx, ctx.attr<int64_t>(0), shape.size()));
  for (size_t i = 1; i < ctx.in.size(); ++i) {
    TERN_OK(ctx.rank(i, static_cast<int>(shape.size())));
    TERN_OK(want_dtype(ctx, i, ctx.in[0].dtype));
    for (size_t a = 0; a < shape.size(); ++a) {
      if (a == axis) continue;
      TERN_OK(ctx.same(shape[a], ctx.in[i].shape[a],
                       "operands 0 and " + std::to_string(i) + ", axis " + std::to_string(a)));
    }
    shape[axis] = ctx.dims.add(shape[axis], ctx.in[i].shape[axis]);
  }
  return one(ctx.in[0].dtype, std::move(shape));
}

Status reference(const Node& node, RefTensors& r) {
  const auto axis = static_cast<size_t>(attr<int64_t>(node, 0));
  RefTensor& out = r.out[0];
  const Extents stride = strides_of(out.shape);
  int64_t first = 0;
  for (const RefTensor* in : r.in) {
    walk(in->shape, first * stride[axis], stride, [&](int64_t n, int64_t to) { move_element(*in, n, out, to); });
    first += in->shape[axis];
  }
  return ok();
}

}  // namespace

constinit const OpDef kConcatOp{.name = "concat",
                                .min_in = 1,
                                .max_in = -1,
                                .attrs = kAttrs,
                                .infer = infer,
                                .reference = reference,
                                .moves = OpDef::Moves::all};

}  // namespace tern
