#include "lower/groups.h"

namespace tern::lowering {

IndexMap dense_map(DimTable& dims, const Shape& shape) {
  IndexMap map;
  map.stride.resize(shape.size());
  Dim stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    map.stride[i] = stride;
    stride = dims.mul(stride, shape[i]);
  }
  return map;
}

bool same_map(const DimTable& dims, const IndexMap& a, const IndexMap& b, const Shape& axes) {
  if (a == b) return true;
  if (a.stride.size() != b.stride.size() || !dims.equal(a.offset, b.offset).value_or(false)) return false;
  for (size_t i = 0; i < a.stride.size(); ++i) {
    if (i < axes.size() && axes[i] == Dim(1)) continue;
    if (!dims.equal(a.stride[i], b.stride[i]).value_or(false)) return false;
  }
  return true;
}

std::vector<Dim> dims_of(const Problem& problem) {
  std::vector<Dim> out = problem.extent;
  const auto all = [&](const std::vector<Dim>& dims) { out.insert(out.end(), dims.begin(), dims.end()); };
  const auto map = [&](const IndexMap& m) {
    out.push_back(m.offset);
    all(m.stride);
  };
  const auto expr = [&](const ScalarExpr& e) {
    all(e.dims);
    for (const ScalarExpr::Load& l : e.loads) map(l.map);
  };
  for (const Operand& o : problem.operands) all(o.type.shape);
  expr(problem.prologue);
  for (const Part& part : problem.parts) {
    out.push_back(part.n);
    expr(part.epilogue);
    for (const Output& o : part.outs) map(o.map);
  }
  return out;
}

Dim element_count(DimTable& dims, const Shape& shape) {
  Dim n = 1;
  for (const Dim d : shape) n = dims.mul(n, d);
  return n;
}

Origin origin_of(const Graph& graph, Value v) {
  const OpDef* op = graph.node(v.node).op;
  if (op == &kParamOp || op == &kConstantOp) return Origin::param;
  if (op == &kStateOp) return Origin::state;
  return op == &kInputOp ? Origin::io : Origin::temp;
}

std::string label_of(const Graph& graph, uint32_t node) {
  const Node& n = graph.node(node);
  return n.loc.text.empty() ? std::string(n.op->name) : n.loc.text;
}

}  // namespace tern::lowering
