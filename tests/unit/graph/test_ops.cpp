#include "test_ops.h"

namespace tern {
namespace {

using Types = Result<std::vector<TensorType>>;

Types infer_same(InferCtx& ctx) {  // any number of equal operands
  for (size_t i = 1; i < ctx.in.size(); ++i) {
    TERN_OK(ctx.rank(i, static_cast<int>(ctx.in[0].shape.size())));
    if (ctx.in[i].dtype != ctx.in[0].dtype) return ctx.error("operands of different types");
    for (size_t a = 0; a < ctx.in[0].shape.size(); ++a)
      TERN_OK(ctx.same(ctx.in[0].shape[a], ctx.in[i].shape[a], "axis " + std::to_string(a)));
  }
  return std::vector<TensorType>{ctx.in[0]};
}

constexpr AttrSpec kDotAttrs[] = {{.name = "contract", .kind = AttrKind::integer, .optional = true, .number = -1},
                                  {.name = "accumulate", .kind = AttrKind::dtype, .optional = true, .text = "f32"}};
Types infer_dot(InferCtx& ctx) {  // [.., K] x [N, K] -> [.., N]
  TERN_OK(ctx.rank(1, 2));
  TERN_TRY(const int k, ctx.axis(ctx.attr<int64_t>(0), ctx.in[0].shape.size()));
  TERN_OK(ctx.same(ctx.in[0].shape[static_cast<size_t>(k)], ctx.in[1].shape[1], "contracted axis"));
  TensorType t = ctx.in[0];
  t.shape[static_cast<size_t>(k)] = ctx.in[1].shape[0];
  return std::vector<TensorType>{t};
}

constexpr AttrSpec kSplitAttrs[] = {{.name = "parts", .kind = AttrKind::integer}};
Types infer_split(InferCtx& ctx) {  // the last axis into equal parts
  const int64_t parts = ctx.attr<int64_t>(0);
  if (ctx.in[0].shape.empty() || parts < 1 || parts > 100) return ctx.error("wants an axis and 1 to 100 parts");
  TensorType t = ctx.in[0];
  TERN_OK(ctx.divides(parts, t.shape.back(), "last axis"));
  t.shape.back() = ctx.dims.floordiv(t.shape.back(), parts);
  return std::vector<TensorType>(static_cast<size_t>(parts), t);
}

constexpr AttrSpec kReshapeAttrs[] = {{.name = "shape", .kind = AttrKind::shape}};
Types infer_reshape(InferCtx& ctx) {
  Dim a = 1, b = 1;
  for (Dim d : ctx.in[0].shape) a = ctx.dims.mul(a, d);
  for (Dim d : ctx.attr<Shape>(0)) b = ctx.dims.mul(b, d);
  TERN_OK(ctx.same(a, b, "element count"));
  return std::vector<TensorType>{{ctx.in[0].dtype, ctx.attr<Shape>(0), nullptr}};
}

constexpr AttrSpec kLateAttrs[] = {{.name = "size", .kind = AttrKind::dim}};
Types infer_late(InferCtx& ctx) { return std::vector<TensorType>{ctx.in[0]}; }

constexpr AttrSpec kSizedAttrs[] = {{.name = "n", .kind = AttrKind::dim}};
Types infer_sized(InferCtx& ctx) { return std::vector<TensorType>{{DType::f32, {ctx.attr<Dim>(0)}, nullptr}}; }

Types infer_if(InferCtx& ctx) {
  if (ctx.regions.size() != 2) return ctx.error("wants two regions");
  for (const auto& r : ctx.regions) {
    if (r->outputs().size() != 1 || r->ports().size() + 1 != ctx.in.size())
      return ctx.error("a branch takes the operands and gives one result");
  }
  const Graph& g = *ctx.regions[0];
  return std::vector<TensorType>{g.type(g.outputs()[0].value)};
}

constexpr AttrSpec kEveryAttrs[] = {
    {.name = "b", .kind = AttrKind::boolean},
    {.name = "i", .kind = AttrKind::integer},
    {.name = "r", .kind = AttrKind::real},
    {.name = "t", .kind = AttrKind::text},
    {.name = "d", .kind = AttrKind::dtype},
    {.name = "list", .kind = AttrKind::ints},
    {.name = "n", .kind = AttrKind::dim},
    {.name = "s", .kind = AttrKind::shape},
    {.name = "c", .kind = AttrKind::constant},
    {.name = "ob", .kind = AttrKind::boolean, .optional = true, .number = 1},
    {.name = "or", .kind = AttrKind::real, .optional = true, .number = 0.5},
    {.name = "ot", .kind = AttrKind::text, .optional = true, .text = "none"},
};

const OpDef kAdd{.name = "add", .min_in = 2, .max_in = 2, .infer = infer_same},
    kNeg{.name = "neg", .min_in = 1, .max_in = 1, .infer = infer_same},
    kSum{.name = "sum", .min_in = 1, .max_in = -1, .infer = infer_same},
    kDot{.name = "dot_general", .min_in = 2, .max_in = 2, .attrs = kDotAttrs, .infer = infer_dot},
    kSplit{.name = "split", .min_in = 1, .max_in = 1, .attrs = kSplitAttrs, .infer = infer_split},
    kReshape{.name = "reshape", .min_in = 1, .max_in = 1, .attrs = kReshapeAttrs, .infer = infer_reshape},
    kLate{.name = "late",
          .min_in = 1,
          .max_in = 1,
          .attrs = kLateAttrs,
          .fx = {.rng = false, .alias_in = -1, .gives = 0},
          .infer = infer_late},
    kSized{.name = "sized", .min_in = 0, .max_in = 1, .attrs = kSizedAttrs, .infer = infer_sized},
    kIf{.name = "if", .min_in = 1, .max_in = -1, .infer = infer_if},
    kEvery{.name = "every", .min_in = 1, .max_in = 1, .attrs = kEveryAttrs, .infer = infer_same};
const OpDef* const kOps[] = {&kAdd, &kNeg, &kSum, &kDot, &kSplit, &kReshape, &kLate, &kSized, &kIf, &kEvery};

}  // namespace

std::span<const OpDef* const> op_list() { return kOps; }

}  // namespace tern
