// cumsum: each element is the sum of those up to it along the last axis.
#include "graph/text/text.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

Types infer(InferCtx& ctx) {
  TERN_OK(dense(ctx, 0));
  const TensorType& x = ctx.in[0];
  if (!is_float(x.dtype) && !is_int(x.dtype)) return ctx.error(text_of(ctx, 0) + ", wants floats or integers");
  if (x.shape.empty()) return ctx.error(text_of(ctx, 0) + ", wants an axis");
  return one(x.dtype, x.shape);
}

Status reference(const Node&, RefTensors& r) {
  const RefTensor& x = *r.in[0];
  RefTensor& out = r.out[0];
  const int64_t n = x.shape.back();
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto k = static_cast<size_t>(i);
    const bool first = i % n == 0;
    if (x.i.empty())
      out.f[k] = x.f[k] + (first ? 0.0 : out.f[k - 1]);
    else
      out.i[k] = wrap_to(out.dtype, static_cast<int64_t>(static_cast<uint64_t>(x.i[k]) +
                                                         (first ? 0 : static_cast<uint64_t>(out.i[k - 1]))));
  }
  return ok();
}

}  // namespace

constinit const OpDef kCumsumOp{.name = "cumsum", .min_in = 1, .max_in = 1, .infer = infer, .reference = reference};

}  // namespace tern
