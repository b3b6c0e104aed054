// pad: low and high elements of a scalar value before and after each axis, interior ones between elements; negative low
// or high cut. An extent n becomes low + n + max(n - 1, 0) * interior + high (as StableHLO's pad).
#include "graph/text/text.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "low", .kind = AttrKind::shape},
                               {.name = "high", .kind = AttrKind::shape},
                               {.name = "interior", .kind = AttrKind::ints, .optional = true}};  // empty: none

Types infer(InferCtx& ctx) {
  TERN_OK(all_dense(ctx));
  const Shape &from = ctx.in[0].shape, &low = ctx.attr<Shape>(0), &high = ctx.attr<Shape>(1);
  const auto& interior = ctx.attr<std::vector<int64_t>>(2);
  TERN_OK(ctx.rank(1, 0));
  TERN_OK(want_dtype(ctx, 1, ctx.in[0].dtype));
  if (low.size() != from.size() || high.size() != from.size() || (!interior.empty() && interior.size() != from.size()))
    return ctx.error(text_of(ctx, 0) + ", low, high and interior want one number an axis");
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    Dim n = from[i];
    if (!interior.empty() && interior[i] != 0) {
      if (interior[i] < 0) return ctx.error("interior is negative on axis " + std::to_string(i));
      n = ctx.dims.add(n, ctx.dims.mul(interior[i], ctx.dims.maximum(ctx.dims.sub(n, 1), 0)));
    }
    n = ctx.dims.add(ctx.dims.add(n, low[i]), high[i]);
    TERN_OK(at_most(ctx, 0, n, "axis " + std::to_string(i) + ", what is left after cutting"));
    shape.push_back(n);
  }
  return one(ctx.in[0].dtype, std::move(shape));
}

Status reference(const Node& node, RefTensors& r) {
  TERN_TRY(const Extents low, numbers(r, attr<Shape>(node, 0)));
  const auto& interior = attr<std::vector<int64_t>>(node, 2);
  RefTensor& out = r.out[0];
  for (int64_t n = 0; n < out.size(); ++n) move_element(*r.in[1], 0, out, n);
  const Extents &from = r.in[0]->shape, stride = strides_of(out.shape);
  walk(from, 0, Extents(from.size(), 0), [&](int64_t n, int64_t) {
    int64_t rest = n, to = 0;
    for (size_t a = from.size(); a-- > 0; rest /= from[a]) {
      const int64_t p = low[a] + rest % from[a] * (interior.empty() ? 1 : interior[a] + 1);
      if (p < 0 || p >= out.shape[a]) return;
      to += p * stride[a];
    }
    move_element(*r.in[0], n, out, to);
  });
  return ok();
}

}  // namespace

constinit const OpDef kPadOp{.name = "pad",
                             .min_in = 2,
                             .max_in = 2,
                             .attrs = kAttrs,
                             .infer = infer,
                             .reference = reference,
                             .moves = OpDef::Moves::all};

}  // namespace tern
