// softmax and log_softmax along an axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/common/decompose.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/norm.h"
#include "tern/ops/reduce.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "axis", .kind = AttrKind::integer}};

Types infer(InferCtx& ctx) {
  TERN_OK(floats(ctx, 0));
  TERN_OK(front_axis(ctx, ctx.attr<int64_t>(0), ctx.in[0].shape.size()));
  return one(ctx.in[0].dtype, ctx.in[0].shape);
}

Status reference(const Node& node, RefTensors& r, bool log_form) {
  const RefTensor& in = *r.in[0];
  const auto axis = static_cast<size_t>(attr<int64_t>(node, 0));
  const int64_t extent = in.shape[axis], inner = count(in.shape, axis + 1, in.shape.size());
  if (extent == 0) return ok();
  for (int64_t row = 0; row < in.size() / extent; ++row) {
    const int64_t base = row / inner * extent * inner + row % inner;
    const auto at = [&](int64_t k) { return static_cast<size_t>(base + k * inner); };
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = 0; k < extent; ++k) top = scalar_row(ScalarOp::max).f64(top, in.f[at(k)], 0);
    for (int64_t k = 0; k < extent; ++k) sum += std::exp(in.f[at(k)] - top);
    for (int64_t k = 0; k < extent; ++k) {
      const double x = in.f[at(k)] - top;
      r.out[0].f[at(k)] = log_form ? x - std::log(sum) : std::exp(x) / sum;
    }
  }
  return ok();
}

Result<std::vector<Value>> decompose(Builder& b, const Node& node, std::span<const Value> in, bool log_form) {
  const AxisList axes{attr<int64_t>(node, 0)};
  const DType dtype = b.type(in[0]).dtype;
  const Value x = compute_cast(b, in[0]);
  const Value centred = sub(b, x, reduce_max(b, x, axes, true));
  const Value e = exp(b, centred), sum = reduce_sum(b, e, axes, true);
  const Value y = log_form ? sub(b, centred, log(b, sum)) : div(b, e, sum);
  return take(b, {cast(b, y, dtype)});
}

}  // namespace

constinit const OpDef kSoftmaxOp{
    .name = "softmax",
    .kind = OpKind::composite,
    .min_in = 1,
    .max_in = 1,
    .attrs = kAttrs,
    .infer = infer,
    .decompose = [](Builder& b, const Node& n, std::span<const Value> in) { return decompose(b, n, in, false); },
    .reference = [](const Node& n, RefTensors& r) { return reference(n, r, false); }};
constinit const OpDef kLogSoftmaxOp{
    .name = "log_softmax",
    .kind = OpKind::composite,
    .min_in = 1,
    .max_in = 1,
    .attrs = kAttrs,
    .infer = infer,
    .decompose = [](Builder& b, const Node& n, std::span<const Value> in) { return decompose(b, n, in, true); },
    .reference = [](const Node& n, RefTensors& r) { return reference(n, r, true); }};

Value softmax(Builder& b, Value x, int axis) {
  if (b.failed()) return {};
  return b.op("softmax", {x}, {from_front(b, "softmax", axis, b.type(x).shape.size())});
}
Value log_softmax(Builder& b, Value x, int axis) {
  if (b.failed()) return {};
  return b.op("log_softmax", {x}, {from_front(b, "log_softmax", axis, b.type(x).shape.size())});
}

}  // namespace tern
