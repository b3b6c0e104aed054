// reshape: the same elements in row-major order under another shape.
#include "graph/text/text.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "shape", .kind = AttrKind::shape}};

Types infer(InferCtx& ctx) {
  TERN_OK(dense(ctx, 0));
  const Shape& shape = ctx.attr<Shape>(0);
  TERN_OK(ctx.same(product(ctx.dims, ctx.in[0].shape), product(ctx.dims, shape), "element count"));
  TERN_OK(extents(ctx, shape));
  return one(ctx.in[0].dtype, shape);
}

// Axes that are not the constant 1: those decide where elements lie.
std::vector<size_t> real_axes(const Shape& shape) {
  std::vector<size_t> out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!is_one(shape[i])) out.push_back(i);
  }
  return out;
}

// One group of axes of both sides with equal products: [i, i_end) of the operand, [j, j_end) of the result.
struct Group {
  size_t i, i_end, j, j_end;
};

// The smallest next group whose products are provably equal; what is left over is one group, as the type rule made sure
// of.
Group next_group(DimTable& dims, const Shape& from, const std::vector<size_t>& a, const Shape& to,
                 const std::vector<size_t>& b, size_t i, size_t j) {
  for (size_t total = 2; total <= a.size() - i + b.size() - j; ++total) {
    for (size_t m = 1; m < total && i + m <= a.size(); ++m) {
      const size_t n = total - m;
      if (j + n > b.size()) continue;
      Dim p = 1, q = 1;
      for (size_t k = 0; k < m; ++k) p = dims.mul(p, from[a[i + k]]);
      for (size_t k = 0; k < n; ++k) q = dims.mul(q, to[b[j + k]]);
      if (dims.equal(p, q) == true) return {i, i + m, j, j + n};
    }
  }
  return {i, a.size(), j, b.size()};
}

OrRefuse<IndexMap> view(DimTable& dims, const Node& node, const TensorType& type, const IndexMap& in) {
  const Shape &from = type.shape, &to = attr<Shape>(node, 0);
  IndexMap out{in.offset, std::vector<Dim>(to.size(), 0)};
  const std::vector<size_t> a = real_axes(from), b = real_axes(to);
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const Group g = next_group(dims, from, a, to, b, i, j);
    for (size_t k = g.i; k + 1 < g.i_end; ++k) {  // the operand's axes of the group must lie one within the other
      const Dim inner = dims.mul(in.stride[a[k + 1]], from[a[k + 1]]);
      if (dims.equal(in.stride[a[k]], inner) == true) continue;
      return refuse("reshape of " + shape_text(dims, from) + " to " + shape_text(dims, to) + ": axes " +
                    std::to_string(a[k]) + " and " + std::to_string(a[k + 1]) +
                    " do not lie one within the other (strides " + dims.text(in.stride[a[k]]) + " and " +
                    dims.text(in.stride[a[k + 1]]) + ")");
    }
    Dim step = g.i_end > g.i ? in.stride[a[g.i_end - 1]] : Dim(0);
    for (size_t k = g.j_end; k-- > g.j;) {
      out.stride[b[k]] = step;
      step = dims.mul(step, to[b[k]]);
    }
    i = g.i_end;
    j = g.j_end;
  }
  return out;
}

Status reference(const Node&, RefTensors& r) {
  r.out[0].f = r.in[0]->f;
  r.out[0].i = r.in[0]->i;
  return ok();
}

}  // namespace

constinit const OpDef kReshapeOp{.name = "reshape",
                                 .min_in = 1,
                                 .max_in = 1,
                                 .attrs = kAttrs,
                                 .view = view,
                                 .infer = infer,
                                 .reference = reference,
                                 .moves = OpDef::Moves::first};

}  // namespace tern
