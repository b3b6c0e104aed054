// Which values get memory: leaves, results and operands of anchors, outputs, and what would be computed too often.
#include <algorithm>

#include "lower/fuse.h"

namespace tern::lowering {
namespace {

constexpr int kHeavy = 10;          // exp, sin, division-free polynomials
constexpr int kShareAbove = 8;      // recomputed for several readers up to this cost
constexpr int kRepeatAbove = 3;     // recomputed for every broadcast position up to this cost

int own_cost(const Node& node) {
  switch (static_cast<ScalarOp>(node.op->scalar)) {
    case ScalarOp::exp:
    case ScalarOp::log:
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tanh:
    case ScalarOp::erf:
    case ScalarOp::pow:
    case ScalarOp::atan2:
    case ScalarOp::sigmoid:
    case ScalarOp::silu:
    case ScalarOp::gelu_tanh:
    case ScalarOp::gelu_erf:
    case ScalarOp::softplus: return kHeavy;
    case ScalarOp::div:
    case ScalarOp::rem:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt: return 3;
    default: return 1;
  }
}

}  // namespace

FuseState::FuseState(const Graph& g, const Caps& c) : graph(g), dims(*g.dims), caps(c), order(g.order()) {
  stored.of.resize(g.node_count());
  for (uint32_t i = 0; i < g.node_count(); ++i) stored.of[i].resize(std::max<size_t>(1, g.node(i).out.size()));
}

bool FuseState::is_leaf(uint32_t node) const {
  const OpDef* op = graph.node(node).op;
  return op == &kInputOp || op == &kParamOp || op == &kStateOp || op == &kConstantOp;
}

bool FuseState::is_anchor(uint32_t node) const {
  return !is_leaf(node) && !is_elementwise(node) && !is_view(node) && !is_generator(graph.node(node));
}

bool FuseState::live_output(Value v) const {
  const auto is = [&](const auto& port, Value value) { return value == v && !port.empty(); };
  for (const OutputPort& o : graph.outputs()) {
    if (is(o.name, o.value)) return true;
  }
  for (const StateUpdate& u : graph.updates()) {
    if (is(u.state, u.next)) return true;
  }
  return false;
}

Value FuseState::base_of(Value v) const {
  std::vector<uint32_t> chain;
  Value base = v, at = v;
  while (!stored(at) && is_view(at.node)) {
    chain.insert(chain.begin(), at.node);
    at = graph.node(at.node).in[0];
    IndexMap map = dense_map(dims, graph.type(at).shape);
    TensorType type = graph.type(at);
    bool composes = true;
    for (const uint32_t id : chain) {
      const Node& view = graph.node(id);
      auto next = view.op->view(dims, view, type, map);
      if (!next) {
        composes = false;
        break;
      }
      map = *next;
      type = view.out[0];
    }
    const Shape& shape = graph.type(v).shape;
    const bool whole = dims.equal(element_count(dims, shape), element_count(dims, graph.type(at).shape)).value_or(false);
    if (composes && whole && same_map(dims, map, dense_map(dims, shape))) base = at;
  }
  return base;
}

void mark_roots(FuseState& s) {
  const Graph& g = s.graph;
  std::vector<int> uses(g.node_count());   // of result 0, through views
  std::vector<bool> repeated(g.node_count());
  for (const uint32_t id : s.order) {
    const Node& node = g.node(id);
    if (s.is_leaf(id) && !is_scalar_constant(node)) s.stored.mark({id, 0});
    if (s.is_anchor(id)) {
      for (uint16_t r = 0; r < node.out.size(); ++r) s.stored.mark({id, r});
    }
  }
  for (const OutputPort& o : g.outputs()) s.stored.mark(o.value);
  for (const StateUpdate& u : g.updates()) s.stored.mark(u.next);
  for (const uint32_t id : s.order) {
    if (!s.is_anchor(id) || find_anchor(g.node(id).op->name) == nullptr) continue;  // regions take any operand
    for (const Value v : g.node(id).in) s.stored.mark(s.base_of(v));
  }
  std::vector<int> cost(g.node_count());
  for (const uint32_t id : s.order) {
    const Node& node = g.node(id);
    if (s.is_leaf(id) || s.is_anchor(id)) continue;
    cost[id] = s.is_elementwise(id) ? own_cost(node) : 0;
    for (const Value v : node.in) {
      if (!s.stored(v)) cost[id] += cost[v.node];
    }
  }
  for (size_t i = s.order.size(); i-- > 0;) {
    const uint32_t id = s.order[i];
    const Node& node = g.node(id);
    if (s.is_elementwise(id) && (uses[id] > 1 ? cost[id] > kShareAbove : repeated[id] && cost[id] > kRepeatAbove)) s.stored.mark({id, 0});
    const bool through = s.is_view(id) && !s.stored({id, 0});
    for (const Value v : node.in) {
      uses[v.node] += through ? std::max(1, uses[id]) : 1;
      if (!through) continue;
      const bool same_size = s.dims.equal(element_count(s.dims, g.type(v).shape), element_count(s.dims, node.out[0].shape)).value_or(false);
      const bool slice = node.op->name == "slice";
      if (repeated[id] || (!same_size && !slice)) repeated[v.node] = true;
    }
    // A scalar operand of a shaped node is read at every position.
    if (s.is_elementwise(id) && !s.stored({id, 0})) {
      for (const Value v : node.in) repeated[v.node] = repeated[v.node] || repeated[id];
    }
    for (const Value v : node.in) {
      if (s.is_elementwise(id) && g.type(v).shape.empty() && !node.out[0].shape.empty()) repeated[v.node] = true;
    }
  }
}

}  // namespace tern::lowering
