// Which values get memory: leaves, results and operands of anchors, outputs, and what would be computed too often.
#include <algorithm>

#include "core/scalar.h"
#include "lower/fuse/fuse.h"
#include "lower/fuse/make/anchors.h"

namespace tern::lowering {
namespace {

constexpr int kHeavy = 10;       // a polynomial, and often another one
constexpr int kShareAbove = 8;   // recomputed for several readers up to this cost
constexpr int kRepeatAbove = 3;  // recomputed for every broadcast position up to this cost
// Instructions of one region, counted as a tree. Code generation grows faster than the code, and a kernel has a limit.
constexpr int kMaxSize = 96;

constexpr ScalarOp kPolynomials[] = {ScalarOp::exp,     ScalarOp::log,     ScalarOp::sin,       ScalarOp::cos,
                                     ScalarOp::tanh,    ScalarOp::erf,     ScalarOp::pow,       ScalarOp::atan2,
                                     ScalarOp::silu,    ScalarOp::sigmoid, ScalarOp::gelu_tanh, ScalarOp::gelu_erf,
                                     ScalarOp::softplus};
constexpr ScalarOp kDivisions[] = {ScalarOp::div, ScalarOp::rem, ScalarOp::sqrt, ScalarOp::rsqrt, ScalarOp::reciprocal};

int own_cost(const Node& node) {
  const auto op = static_cast<ScalarOp>(node.op->scalar);
  if (std::find(std::begin(kPolynomials), std::end(kPolynomials), op) != std::end(kPolynomials)) return kHeavy;
  return std::find(std::begin(kDivisions), std::end(kDivisions), op) != std::end(kDivisions) ? 3 : 1;
}

void mark_fixed(FuseState& s) {
  const Graph& g = s.graph;
  for (const uint32_t id : s.order) {
    const Node& node = g.node(id);
    if (s.is_leaf(id) && !is_scalar_constant(node)) s.stored.mark({id, 0});
    if (!s.is_anchor(id)) continue;
    for (uint16_t r = 0; r < node.out.size(); ++r) s.stored.mark({id, r});
  }
  for (const Value v : s.kept) s.stored.mark(v);
  for (const uint32_t id : s.order) {
    for (const Value v : g.node(id).in) {
      // What crosses devices has memory, and what anchors read; reduce, concat and pad take any expression.
      const bool crosses = s.device[v.node] != s.device[id];
      const bool reads = (s.is_anchor(id) && !is_mover(g.node(id))) || late_symbol(s.dims, g.node(id));
      if ((crosses || reads) && !s.stored(v)) s.stored.mark(s.base_of(v));
    }
  }
}

// How often each node's first result is read, looking through views without memory.
std::vector<int> count_uses(const FuseState& s) {
  std::vector<int> uses(s.graph.node_count());
  for (size_t i = s.order.size(); i-- > 0;) {
    const uint32_t id = s.order[i];
    const bool through = s.is_view(id) && !s.stored({id, 0});
    for (const Value v : s.graph.node(id).in) uses[v.node] += through ? std::max(1, uses[id]) : 1;
  }
  return uses;
}

// Stores what several readers would compute again, and cuts trees that grow too large; operands first, so that what is
// stored costs its readers nothing. Gives the cost of what is left.
std::vector<int> mark_shared(FuseState& s) {
  const Graph& g = s.graph;
  const std::vector<int> uses = count_uses(s);
  std::vector<int> cost(g.node_count()), size(g.node_count());
  for (const uint32_t id : s.order) {
    const Node& node = g.node(id);
    size[id] = 1;
    if (s.is_leaf(id) || s.is_anchor(id)) continue;
    cost[id] = s.is_elementwise(id) ? own_cost(node) : 0;
    for (const Value v : node.in) {
      if (s.stored(v)) continue;
      cost[id] = std::min(cost[id] + cost[v.node], 1 << 20);
      size[id] = std::min(size[id] + size[v.node], 1 << 20);
    }
    if (size[id] > kMaxSize || (s.is_elementwise(id) && uses[id] > 1 && cost[id] > kShareAbove)) {
      s.stored.mark({id, 0});
      size[id] = 1;
    }
  }
  return cost;
}

// Stores what a broadcast would compute again at every position; outermost first, so that a chain is stored once, at
// its end.
void mark_repeated(FuseState& s, const std::vector<int>& cost) {
  const Graph& g = s.graph;
  std::vector<bool> repeated(g.node_count());
  for (size_t i = s.order.size(); i-- > 0;) {
    const uint32_t id = s.order[i];
    const Node& node = g.node(id);
    if (s.is_elementwise(id) && repeated[id] && cost[id] > kRepeatAbove) s.stored.mark({id, 0});
    const bool here = s.stored({id, 0});
    for (const Value v : node.in) {
      bool again = repeated[id] && !here;
      if (s.is_view(id) && !here && !again) {  // a view with more elements than its operand repeats them
        const Dim from = element_count(s.dims, g.type(v).shape), to = element_count(s.dims, node.out[0].shape);
        again = !(s.dims.equal(from, to).value_or(false) || s.dims.range(s.dims.sub(from, to)).first >= 0);
      }
      // A scalar operand of a shaped node is read at every position.
      again = again || (s.is_elementwise(id) && g.type(v).shape.empty() && !node.out[0].shape.empty());
      if (again) repeated[v.node] = true;
    }
  }
}

}  // namespace

FuseState::FuseState(const Graph& g, const std::vector<DeviceId>& d, const Caps& c, const Taken& t)
    : graph(g), dims(*g.dims), device(d), caps(c), taken(t), order(g.order()), late(g) {
  stored.of.resize(g.node_count());
  for (uint32_t i = 0; i < g.node_count(); ++i) stored.of[i].resize(std::max<size_t>(1, g.node(i).out.size()));
  for (const OutputPort& o : g.outputs()) kept.insert(o.value);
  for (const StateUpdate& u : g.updates()) kept.insert(u.next);
}

bool FuseState::is_leaf(uint32_t node) const {
  const OpDef* op = graph.node(node).op;
  return op == &kInputOp || op == &kParamOp || op == &kStateOp || op == &kConstantOp;
}

bool FuseState::is_anchor(uint32_t node) const {
  return !is_leaf(node) && !is_elementwise(node) && !is_view(node) && !is_generator(graph.node(node));
}

std::vector<Value> FuseState::waits_for(const Group& group) const {
  std::vector<Value> out;
  if (late.none()) return out;
  for (const uint32_t symbol : late.in(dims_of(group.problem))) {
    const auto giver = late.givers().find(symbol);
    if (giver != late.givers().end()) out.push_back(base_of(graph.node(giver->second).in[0]));
  }
  return out;
}

std::string FuseState::where(uint32_t node) const {
  const Node& n = graph.node(node);
  return "node " + std::to_string(node) + " (" + std::string(n.op->name) + ")" +
         (n.loc.text.empty() ? "" : " at " + n.loc.text);
}

Value FuseState::base_of(Value v) const {
  std::vector<uint32_t> chain;  // innermost last
  Value base = v, at = v;
  const Shape& shape = graph.type(v).shape;
  while (!stored(at) && is_view(at.node)) {
    chain.push_back(at.node);
    at = graph.node(at.node).in[0];
    if (!dims.equal(element_count(dims, shape), element_count(dims, graph.type(at).shape)).value_or(false)) continue;
    IndexMap map = dense_map(dims, graph.type(at).shape);
    TensorType type = graph.type(at);
    bool composes = true;
    for (size_t i = chain.size(); i-- > 0 && composes;) {
      const Node& view = graph.node(chain[i]);
      auto next = view.op->view(dims, view, type, map);
      composes = next.ok();
      if (composes) map = *next, type = view.out[0];
    }
    if (composes && same_map(dims, map, dense_map(dims, shape), shape)) base = at;
  }
  return base;
}

void mark_roots(FuseState& s) {
  mark_fixed(s);
  mark_repeated(s, mark_shared(s));
}

}  // namespace tern::lowering
