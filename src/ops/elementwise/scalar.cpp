// The elementwise ops: one OpDef a row of the scalar table.
#include <array>
#include <cmath>

#include "graph/text/text.h"
#include "ops/common/contents.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kCastAttrs[] = {{.name = "to", .kind = AttrKind::dtype}};

Types infer_scalar(InferCtx& ctx, ScalarOp op) {
  TERN_OK(all_dense(ctx));
  std::vector<DType> types;
  for (const TensorType& t : ctx.in) types.push_back(t.dtype);
  const DType to = op == ScalarOp::cast ? ctx.attr<DType>(0) : DType::f32;
  auto dtype = scalar_type(op, types, to);
  if (!dtype) return make_error(Code::invalid, dtype.error().text, ctx.loc.text);
  if (op == ScalarOp::cast && is_complex(types[0]) && !is_complex(to))
    return ctx.error(std::string(dtype_name(types[0])) + " has no value as " + std::string(dtype_name(to)));
  const Shape* shape = nullptr;
  size_t first = 0;
  for (size_t i = 0; i < ctx.in.size(); ++i) {
    if (ctx.in[i].shape.empty()) continue;
    if (!shape) {
      shape = &ctx.in[i].shape;
      first = i;
      continue;
    }
    TERN_OK(
        same_shape(ctx, *shape, ctx.in[i].shape, "operands " + std::to_string(first) + " and " + std::to_string(i)));
  }
  return one(*dtype, shape ? *shape : Shape{});
}

void select_element(const RefTensors& r, int64_t cond, int64_t yes, int64_t no, RefTensor& out, int64_t n) {
  const bool c = r.in[0]->i[static_cast<size_t>(cond)] != 0;
  move_element(*r.in[c ? 1 : 2], c ? yes : no, out, n);
}

// Values keep f64 except where a cast rounds; integers wrap to their type.
Status evaluate_scalar(const Node& node, RefTensors& r) {
  const auto op = static_cast<ScalarOp>(node.op->scalar);
  const ScalarRow& row = scalar_row(op);
  RefTensor& out = r.out[0];
  const DType of = r.in[0]->dtype;
  const bool whole = !is_float(of) && !is_complex(of);
  const auto integer = of == DType::u64 && row.u64 ? row.u64 : row.i64;
  std::array<int64_t, 3> step{};
  for (size_t i = 0; i < r.in.size(); ++i) step[i] = r.in[i]->shape.empty() ? 0 : 1;
  const int64_t total = out.size();
  for (int64_t n = 0; n < total; ++n) {
    const auto k = static_cast<size_t>(n);
    if (row.rule == ScalarRule::cast) {
      cast_element(*r.in[0], n * step[0], out, n);
      continue;
    }
    if (row.rule == ScalarRule::select) {
      select_element(r, n * step[0], n * step[1], n * step[2], out, n);
      continue;
    }
    std::array<double, 3> f{};
    std::array<int64_t, 3> i{};
    for (size_t a = 0; a < r.in.size(); ++a) {
      const auto at = static_cast<size_t>(n * step[a]);
      if (whole)
        i[a] = r.in[a]->i[at];
      else
        f[a] = r.in[a]->f[at];
    }
    if (out.i.empty())
      out.f[k] = row.f64(f[0], f[1], f[2]);
    else if (whole)
      out.i[k] = wrap_to(out.dtype, integer(i[0], i[1], i[2]));
    else
      out.i[k] = row.f64(f[0], f[1], f[2]) != 0;
  }
  return ok();
}

OrRefuse<Contents> scalar_contents(ContentsCtx& ctx) {
  const auto op = static_cast<ScalarOp>(ctx.node.op->scalar);
  int64_t count = 1;
  for (const Dim d : ctx.node.out[0].shape) count *= d.constant().value_or(0);
  Contents out;
  for (int64_t n = 0; n < count; ++n) {
    std::array<Dim, 3> in{};
    for (size_t i = 0; i < ctx.contents.size(); ++i)
      in[i] = (*ctx.contents[i])[ctx.in[i].shape.empty() ? 0 : static_cast<size_t>(n)];
    // As a bool a size is whether it is one.
    const bool truth = op == ScalarOp::cast && ctx.node.out[0].dtype == DType::boolean;
    TERN_ACCEPT(const Dim d,
                truth ? dim_of(ScalarOp::ne, ctx.dims, in[0], 0) : dim_of(op, ctx.dims, in[0], in[1], in[2]));
    out.push_back(d);
  }
  return out;
}

template <ScalarOp S>
constexpr OpDef make(std::string_view name, int8_t arity) {
  OpDef op{};
  op.name = name;
  op.min_in = op.max_in = arity;
  if (S == ScalarOp::cast) op.attrs = kCastAttrs;
  op.scalar = static_cast<int16_t>(S);
  op.infer = [](InferCtx& ctx) { return infer_scalar(ctx, S); };
  op.reference = evaluate_scalar;
  op.contents = scalar_contents;
  return op;
}

}  // namespace

constinit const OpDef kScalarOps[static_cast<size_t>(ScalarOp::count_)] = {
#define TERN_SCALAR(name, arity, rule, f64_value, i64_value, kir_value) make<ScalarOp::name>(#name, arity),
#include "core/scalar_ops.inc"
#undef TERN_SCALAR
};

}  // namespace tern
