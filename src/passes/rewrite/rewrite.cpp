#include "passes/rewrite/rewrite.h"

#include <cmath>

#include "graph/attrs.h"
#include "graph/reference.h"

namespace tern {

bool Uniform::is(double v) const {
  if (is_float(dtype)) return f == v && std::signbit(f) == std::signbit(v);
  return v == std::trunc(v) && std::fabs(v) < 9e15 && i == static_cast<int64_t>(v);
}
bool Uniform::negative_zero() const { return is_float(dtype) && f == 0 && std::signbit(f); }

const Node* Rewriter::def(Value v, std::string_view op) const {
  const Node& n = graph_.at(v);
  return n.op->name == op ? &n : nullptr;
}
const Node* Rewriter::def(Value v, ScalarOp op) const {
  const Node& n = graph_.at(v);
  return is(n, op) ? &n : nullptr;
}

bool Rewriter::constant(Value v) const {
  while (graph_.at(v).op->view && !graph_.at(v).in.empty()) v = graph_.at(v).in[0];
  return graph_.at(v).op == &kConstantOp;
}

std::optional<Uniform> Rewriter::uniform(Value v) const {
  constexpr size_t kMaxBytes = 4096;
  while (graph_.at(v).op->view && !graph_.at(v).in.empty()) v = graph_.at(v).in[0];
  const Node& n = graph_.at(v);
  if (n.op != &kConstantOp) return std::nullopt;
  const Const& c = std::get<Const>(n.attrs[0]);
  if (!c.data || c.data->empty() || c.data->size() > kMaxBytes || is_complex(c.dtype)) return std::nullopt;
  const size_t step = dtype_bytes(c.dtype);
  for (size_t at = step; at < c.data->size(); at += step) {
    if (!std::equal(c.data->begin(), c.data->begin() + static_cast<std::ptrdiff_t>(step),
                    c.data->begin() + static_cast<std::ptrdiff_t>(at))) {
      return std::nullopt;
    }
  }
  auto first = ref_from(TensorView{c.dtype, {}, std::span(*c.data).first(step), nullptr});
  if (!first) return std::nullopt;
  return Uniform{c.dtype, first->f.empty() ? 0 : first->f[0], first->i.empty() ? 0 : first->i[0]};
}

std::optional<Value> Rewriter::make(std::string_view op, std::vector<Value> in, std::vector<Attr> attrs, Loc loc) {
  const OpDef* def = find_op(op);
  if (!def) return std::nullopt;
  const size_t guards = graph_.guards.size();
  auto made = graph_.add(*def, std::move(in), std::move(attrs), std::move(loc));
  // A rewrite that needs a proof which the original did not need is none.
  if (graph_.guards.size() != guards) {
    graph_.guards.resize(guards);
    return std::nullopt;
  }
  if (!made || made->size() != 1) return std::nullopt;
  return (*made)[0];
}

namespace {

Status rewrite_one(Graph& graph, std::span<const Rule> rules) {
  Rewriter rw(graph);
  // Every rule makes the graph smaller or moves it one way, so this ends by itself; the limit guards against rules that
  // do not.
  constexpr int kMaxSweeps = 32;
  bool changed = true;
  for (int sweep = 0; changed && sweep < kMaxSweeps; ++sweep) {
    changed = false;
    for (uint32_t id : graph.order()) {
      if (graph.node(id).op->kind == OpKind::leaf || graph.node(id).out.size() != 1) continue;
      for (Rule rule : rules) {
        const Value old{id, 0};
        const auto value = rule(rw, id);
        if (!value || *value == old || !same_type(*graph.dims, graph.type(old), graph.type(*value))) continue;
        graph.replace(old, *value);
        changed = true;
        break;
      }
    }
  }
  return ok();
}

}  // namespace

Status rewrite(Graph& graph, std::span<const Rule> rules) {
  return for_each_graph(graph, [&](Graph& g) { return rewrite_one(g, rules); });
}

}  // namespace tern
