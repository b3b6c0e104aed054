// reduce: sum prod max min any all over some axes. mean: the sum over its count.
#include "tern/ops/reduce.h"

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "ops/common/contents.h"
#include "ops/common/decompose.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

constexpr AttrSpec kReduceAttrs[] = {{.name = "kind", .kind = AttrKind::text},
                                     {.name = "axes", .kind = AttrKind::ints},
                                     {.name = "keepdims", .kind = AttrKind::boolean, .optional = true}};
constexpr AttrSpec kMeanAttrs[] = {{.name = "axes", .kind = AttrKind::ints},
                                   {.name = "keepdims", .kind = AttrKind::boolean, .optional = true}};

// How a kind folds (a row of the scalar table), what no elements give, and whether it is about bools.
struct Kind {
  std::string_view name;
  ScalarOp fold;
  double empty;  // infinities: the extreme of the type
  bool logic;
};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Kind kKinds[] = {{"sum", ScalarOp::add, 0, false},     {"prod", ScalarOp::mul, 1, false},
                           {"max", ScalarOp::max, -kInf, false}, {"min", ScalarOp::min, kInf, false},
                           {"any", ScalarOp::bit_or, 0, true},   {"all", ScalarOp::bit_and, 1, true}};

const Kind* kind_of(std::string_view name) {
  for (const Kind& k : kKinds) {
    if (k.name == name) return &k;
  }
  return nullptr;
}

Result<Shape> reduced(InferCtx& ctx, const std::vector<int64_t>& list, bool keepdims) {
  const Shape& from = ctx.in[0].shape;
  TERN_TRY(const auto axes, front_axes(ctx, list, from.size()));
  std::vector<bool> gone(from.size());
  for (size_t a : axes) gone[a] = true;
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!gone[i])
      shape.push_back(from[i]);
    else if (keepdims)
      shape.push_back(1);
  }
  return shape;
}

Types infer_reduce(InferCtx& ctx) {
  const Kind* kind = kind_of(ctx.attr<std::string>(0));
  if (!kind) return ctx.error("no kind '" + ctx.attr<std::string>(0) + "', there are sum prod max min any all");
  const DType dtype = ctx.in[0].dtype;
  TERN_OK(dense(ctx, 0));
  if (kind->logic ? dtype != DType::boolean : !is_float(dtype) && !is_int(dtype))
    return ctx.error(text_of(ctx, 0) + ", " + std::string(kind->name) +
                     (kind->logic ? " wants bool" : " wants floats or integers"));
  TERN_TRY(Shape shape, reduced(ctx, ctx.attr<std::vector<int64_t>>(1), ctx.attr<bool>(2)));
  return one(dtype, std::move(shape));
}

int64_t empty_integer(const Kind& kind, DType dtype) {
  if (std::isfinite(kind.empty)) return static_cast<int64_t>(kind.empty);
  const bool wide = dtype_bytes(dtype) == 8, is_signed = dtype_info(dtype).kind == DTypeKind::signed_int;
  if (kind.empty > 0) return wide ? (is_signed ? INT64_MAX : -1) : static_cast<int64_t>(dtype_info(dtype).highest);
  return wide ? (is_signed ? INT64_MIN : 0) : static_cast<int64_t>(dtype_info(dtype).lowest);
}

// Strides of the result over the operand's axes: 0 along reduced ones.
Extents result_strides(const Extents& from, const std::vector<int64_t>& axes) {
  Extents kept = from;
  for (int64_t a : axes) kept[static_cast<size_t>(a)] = 1;
  Extents stride = strides_of(kept);
  for (int64_t a : axes) stride[static_cast<size_t>(a)] = 0;
  return stride;
}

Status reference_reduce(const Node& node, RefTensors& r) {
  const Kind& kind = *kind_of(attr<std::string>(node, 0));
  const ScalarRow& row = scalar_row(kind.fold);
  const RefTensor& in = *r.in[0];
  RefTensor& out = r.out[0];
  for (double& v : out.f) v = kind.empty;
  for (int64_t& v : out.i) v = empty_integer(kind, out.dtype);
  const auto integer = in.dtype == DType::u64 && row.u64 ? row.u64 : row.i64;
  walk(in.shape, 0, result_strides(in.shape, attr<std::vector<int64_t>>(node, 1)), [&](int64_t n, int64_t to) {
    const auto f = static_cast<size_t>(n), t = static_cast<size_t>(to);
    if (in.i.empty())
      out.f[t] = row.f64(out.f[t], in.f[f], 0);
    else
      out.i[t] = wrap_to(out.dtype, integer(out.i[t], in.i[f], 0));
  });
  return ok();
}

OrRefuse<Contents> reduce_contents(ContentsCtx& ctx) {
  const Kind& kind = *kind_of(attr<std::string>(ctx.node, 0));
  Extents from;
  for (const Dim d : ctx.in[0].shape) from.push_back(*d.constant());
  int64_t count = 1;
  for (const Dim d : ctx.node.out[0].shape) count *= *d.constant();
  Contents out(static_cast<size_t>(count), empty_integer(kind, ctx.node.out[0].dtype));
  std::vector<bool> begun(out.size());  // the lowest integer is no size to compare with
  std::optional<std::string> why;
  walk(from, 0, result_strides(from, attr<std::vector<int64_t>>(ctx.node, 1)), [&](int64_t n, int64_t to) {
    const auto f = static_cast<size_t>(n), t = static_cast<size_t>(to);
    const Dim d = (*ctx.contents[0])[f];
    const auto sum = begun[t] ? dim_of(kind.fold, ctx.dims, out[t], d) : OrRefuse<Dim>(d);
    if (sum)
      out[t] = *sum;
    else
      why = sum.why();
    begun[t] = true;
  });
  if (why) return refuse(*why);
  return out;
}

Types infer_mean(InferCtx& ctx) {
  TERN_OK(floats(ctx, 0));
  TERN_TRY(Shape shape, reduced(ctx, ctx.attr<std::vector<int64_t>>(0), ctx.attr<bool>(1)));
  return one(ctx.in[0].dtype, std::move(shape));
}

Status reference_mean(const Node& node, RefTensors& r) {
  const RefTensor& in = *r.in[0];
  RefTensor& out = r.out[0];
  const auto& axes = attr<std::vector<int64_t>>(node, 0);
  walk(in.shape, 0, result_strides(in.shape, axes),
       [&](int64_t n, int64_t to) { out.f[static_cast<size_t>(to)] += in.f[static_cast<size_t>(n)]; });
  double size = 1;
  for (int64_t a : axes) size *= static_cast<double>(in.shape[static_cast<size_t>(a)]);
  for (double& v : out.f) v /= size;
  return ok();
}

Result<std::vector<Value>> decompose_mean(Builder& b, const Node& node, std::span<const Value> in) {
  const auto& axes = attr<std::vector<int64_t>>(node, 0);
  const TensorType type = b.type(in[0]);
  Dim size = 1;
  for (int64_t a : axes) size = b.dims().mul(size, type.shape[static_cast<size_t>(a)]);
  const Value wide = compute_cast(b, in[0]);
  const Value sum = b.op("reduce", {wide}, {std::string("sum"), axes, attr<bool>(node, 1)});
  const Value mean = div(b, sum, dim_value(b, size, b.type(wide).dtype));
  return take(b, {cast(b, mean, type.dtype)});
}

}  // namespace

constinit const OpDef kReduceOp{.name = "reduce",
                                .min_in = 1,
                                .max_in = 1,
                                .attrs = kReduceAttrs,
                                .infer = infer_reduce,
                                .reference = reference_reduce,
                                .contents = reduce_contents};
constinit const OpDef kMeanOp{.name = "mean",
                              .kind = OpKind::composite,
                              .min_in = 1,
                              .max_in = 1,
                              .attrs = kMeanAttrs,
                              .infer = infer_mean,
                              .decompose = decompose_mean,
                              .reference = reference_mean};

}  // namespace tern
