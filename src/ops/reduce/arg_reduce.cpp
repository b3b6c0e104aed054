// arg_reduce: the index of the largest or smallest element along an axis. The first NaN wins over everything, else the
// first of equal values (as NumPy's argmax).
#include <cmath>

#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "largest", .kind = AttrKind::boolean},
                               {.name = "axis", .kind = AttrKind::integer},
                               {.name = "keepdims", .kind = AttrKind::boolean, .optional = true},
                               {.name = "dtype", .kind = AttrKind::dtype, .optional = true, .text = "i32"}};

Types infer(InferCtx& ctx) {
  TERN_OK(dense(ctx, 0));
  const DType dtype = ctx.in[0].dtype, to = ctx.attr<DType>(3);
  if (!is_float(dtype) && !is_int(dtype)) return ctx.error(text_of(ctx, 0) + ", wants floats or integers");
  if (to != DType::i32 && to != DType::i64)
    return ctx.error("the index is i32 or i64, not " + std::string(dtype_name(to)));
  Shape shape = ctx.in[0].shape;
  TERN_TRY(const size_t axis, front_axis(ctx, ctx.attr<int64_t>(1), shape.size()));
  TERN_OK(at_most(ctx, 1, shape[axis], "elements along axis " + std::to_string(axis)));
  if (ctx.attr<bool>(2))
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return one(to, std::move(shape));
}

Status reference(const Node& node, RefTensors& r) {
  const RefTensor& in = *r.in[0];
  const bool largest = attr<bool>(node, 0), wide = in.dtype == DType::u64;
  const auto axis = static_cast<size_t>(attr<int64_t>(node, 1));
  const int64_t extent = in.shape[axis], inner = count(in.shape, axis + 1, in.shape.size());
  const int64_t flip = wide ? INT64_MIN : 0;  // orders the bits of u64 like i64
  // Is the element at a a better one than the one at b?
  const auto better = [&](size_t a, size_t b) {
    if (!in.i.empty()) {
      const int64_t x = in.i[a] ^ flip, y = in.i[b] ^ flip;
      return largest ? x > y : x < y;
    }
    const double x = in.f[a], y = in.f[b];
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
    return largest ? x > y : x < y;
  };
  for (int64_t n = 0; n < r.out[0].size(); ++n) {
    const int64_t base = n / inner * extent * inner + n % inner;
    int64_t best = 0;
    for (int64_t k = 1; k < extent; ++k) {
      if (better(static_cast<size_t>(base + k * inner), static_cast<size_t>(base + best * inner))) best = k;
    }
    r.out[0].i[static_cast<size_t>(n)] = best;
  }
  return ok();
}

}  // namespace

constinit const OpDef kArgReduceOp{
    .name = "arg_reduce", .min_in = 1, .max_in = 1, .attrs = kAttrs, .infer = infer, .reference = reference};

}  // namespace tern
