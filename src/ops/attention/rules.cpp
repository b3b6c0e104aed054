#include "ops/attention/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tern {

Status check_attention(const InferCtx& ctx, size_t first) {
  const double scale = ctx.attr<double>(first), cap = ctx.attr<double>(first + 3);
  if (!std::isfinite(scale)) return ctx.error("scale is not finite");
  if (ctx.attr<int64_t>(first + 2) < 0) return ctx.error("window is " + std::to_string(ctx.attr<int64_t>(first + 2)));
  if (!(cap >= 0) || !std::isfinite(cap)) return ctx.error("soft_cap is " + std::to_string(cap));
  return ok();
}

Status check_heads(InferCtx& ctx) {
  for (size_t i = 0; i < 3; ++i) TERN_OK(floats(ctx, i));
  if (ctx.in[1].dtype != ctx.in[2].dtype)
    return ctx.error(text_of(ctx, 1) + " and " + text_of(ctx, 2) + ", keys and values want one type");
  const auto from_end = [&](size_t input, size_t back) {
    return ctx.in[input].shape[ctx.in[input].shape.size() - back];
  };
  TERN_OK(ctx.same(from_end(1, 2), from_end(2, 2), "heads of keys and values"));
  TERN_OK(ctx.same(from_end(0, 1), from_end(1, 1), "head size of queries and keys"));
  for (size_t i = 0; i < 3; ++i) {
    const auto heads = from_end(i, 2).constant(), size = from_end(i, 1).constant();
    if (!heads || !size || *heads < 1 || *size < 1)
      return ctx.error(text_of(ctx, i) + ", heads and their size must be numbers above 0");
  }
  const int64_t hq = *from_end(0, 2).constant(), hk = *from_end(1, 2).constant();
  if (hq % hk)
    return ctx.error(std::to_string(hq) + " query heads are no multiple of " + std::to_string(hk) + " key heads");
  return ok();
}

Status check_mask(InferCtx& ctx, size_t input) {
  TERN_OK(dense(ctx, input));
  if (ctx.in[input].dtype == DType::boolean || is_float(ctx.in[input].dtype)) return ok();
  return ctx.error(text_of(ctx, input) + ", a mask is bool or floats");
}

Status check_sinks(InferCtx& ctx, size_t input, Dim heads) {
  TERN_OK(floats(ctx, input));
  TERN_OK(ctx.rank(input, 1));
  return ctx.same(ctx.in[input].shape[0], heads, "sinks and query heads");
}

double capped(double score, double soft_cap) { return soft_cap > 0 ? soft_cap * std::tanh(score / soft_cap) : score; }

void attention_weights(std::vector<double>& scores, std::optional<double> sink) {
  double top = sink.value_or(-std::numeric_limits<double>::infinity());
  for (double s : scores) top = s > top || std::isnan(s) ? s : top;
  if (top == -std::numeric_limits<double>::infinity()) {  // nothing is visible
    std::fill(scores.begin(), scores.end(), 0.0);
    return;
  }
  double sum = sink ? std::exp(*sink - top) : 0;
  for (double& s : scores) sum += s = std::exp(s - top);
  for (double& s : scores) s /= sum;
}

}  // namespace tern
