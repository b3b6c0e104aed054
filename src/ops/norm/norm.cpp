// rms_norm and layer_norm over the last axis, with weight and bias where given.
#include "tern/ops/norm.h"

#include <cmath>

#include "ops/common/decompose.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/reduce.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "eps", .kind = AttrKind::real}};

Types infer(InferCtx& ctx) {
  const Shape& shape = ctx.in[0].shape;
  for (size_t i = 0; i < ctx.in.size(); ++i) TERN_OK(floats(ctx, i));
  if (shape.empty()) return ctx.error(text_of(ctx, 0) + ", wants an axis to normalise");
  const double eps = ctx.attr<double>(0);
  if (!(eps >= 0) || !std::isfinite(eps)) return ctx.error("eps is " + std::to_string(eps) + ", wants 0 or more");
  for (size_t i = 1; i < ctx.in.size(); ++i) {
    TERN_OK(ctx.rank(i, 1));
    TERN_OK(ctx.same(ctx.in[i].shape[0], shape.back(), i == 1 ? "weight and last axis" : "bias and last axis"));
  }
  return one(ctx.in[0].dtype, shape);
}

Status reference(const Node& node, RefTensors& r, bool centre) {
  const RefTensor& in = *r.in[0];
  const double eps = attr<double>(node, 0);
  const int64_t n = in.shape.back(), rows = n ? in.size() / n : 0;
  for (int64_t row = 0; row < rows; ++row) {
    const double* x = in.f.data() + row * n;
    double middle = 0, square = 0;
    for (int64_t k = 0; centre && k < n; ++k) middle += x[k];
    middle /= static_cast<double>(n);
    for (int64_t k = 0; k < n; ++k) square += (x[k] - middle) * (x[k] - middle);
    const double scale = 1 / std::sqrt(square / static_cast<double>(n) + eps);
    for (int64_t k = 0; k < n; ++k) {
      double y = (x[k] - middle) * scale;
      if (r.in.size() > 1) y *= r.in[1]->f[static_cast<size_t>(k)];
      if (r.in.size() > 2) y += r.in[2]->f[static_cast<size_t>(k)];
      r.out[0].f[static_cast<size_t>(row * n + k)] = y;
    }
  }
  return ok();
}

// The statistic of a row and its application: the first is a row sum that a producer may own.
Result<std::vector<Value>> decompose(Builder& b, const Node& node, std::span<const Value> in, bool centre) {
  const DType dtype = b.type(in[0]).dtype;
  Value x = compute_cast(b, in[0]);
  const DType wide = b.failed() ? dtype : b.type(x).dtype;
  if (centre) x = sub(b, x, mean(b, x, {-1}, true));
  const Value scale = rsqrt(b, add(b, mean(b, mul(b, x, x), {-1}, true), attr<double>(node, 0)));
  Value y = mul(b, x, scale);
  if (in.size() > 1) y = mul(b, y, cast(b, in[1], wide));
  if (in.size() > 2) y = add(b, y, cast(b, in[2], wide));
  return take(b, {cast(b, y, dtype)});
}

}  // namespace

constinit const OpDef kRmsNormOp{
    .name = "rms_norm",
    .kind = OpKind::composite,
    .min_in = 1,
    .max_in = 2,
    .attrs = kAttrs,
    .infer = infer,
    .decompose = [](Builder& b, const Node& n, std::span<const Value> in) { return decompose(b, n, in, false); },
    .reference = [](const Node& n, RefTensors& r) { return reference(n, r, false); }};
constinit const OpDef kLayerNormOp{
    .name = "layer_norm",
    .kind = OpKind::composite,
    .min_in = 1,
    .max_in = 3,
    .attrs = kAttrs,
    .infer = infer,
    .decompose = [](Builder& b, const Node& n, std::span<const Value> in) { return decompose(b, n, in, true); },
    .reference = [](const Node& n, RefTensors& r) { return reference(n, r, true); }};

Value rms_norm(Builder& b, Value x, Value w, double eps) {
  return b.op("rms_norm", w.valid() ? std::vector{x, w} : std::vector{x}, {eps});
}

Value layer_norm(Builder& b, Value x, Value w, Value bias, double eps) {
  if (bias.valid() && !w.valid()) b.fail(make_error(Code::invalid, "layer_norm: a bias wants a weight"));
  std::vector<Value> in{x};
  if (w.valid()) in.push_back(w);
  if (bias.valid()) in.push_back(bias);
  return b.op("layer_norm", std::move(in), {eps});
}

}  // namespace tern
