#include "tern/graph.h"

#include <algorithm>

#include "base/check.h"
#include "graph/attrs.h"
#include "graph/build.h"
#include "graph/op.h"
#include "graph/sizes/late.h"
#include "graph/text/text.h"

namespace tern {

Graph::Graph() : dims(std::make_shared<DimTable>()) {}
Graph::Graph(std::shared_ptr<DimTable> d) : dims(std::move(d)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Graph Graph::clone() const {
  Graph g(dims);
  g.guards = guards;
  g.ports_ = ports_;
  g.outputs_ = outputs_;
  g.updates_ = updates_;
  g.nodes_.reserve(nodes_.size());
  for (const Node& n : nodes_) {
    Node copy{n.op, n.in, n.out, n.attrs, {}, n.loc};
    for (const auto& r : n.regions) copy.regions.push_back(std::make_unique<Graph>(r->clone()));
    g.nodes_.push_back(std::move(copy));
  }
  return g;
}

std::string_view port_kind_name(PortKind kind) {
  return kind == PortKind::input ? "input" : kind == PortKind::param ? "param" : "state";
}

const OpDef& port_op(PortKind kind) {
  return kind == PortKind::input ? kInputOp : kind == PortKind::param ? kParamOp : kStateOp;
}

Result<Value> Graph::leaf(PortKind kind, std::string name, TensorType type, Loc loc) {
  const std::string what = std::string(port_kind_name(kind)) + " '" + name + "'";
  if (name.empty()) return make_error(Code::invalid, std::string(port_kind_name(kind)) + " without a name", loc.text);
  if (port(name)) return make_error(Code::invalid, what + ": the name is taken", loc.text);
  if (auto s = check_type(*dims, type); !s) {
    Error e = s.take_error();
    e.text = what + ": " + e.text;
    e.where = loc.text;
    return e;
  }
  const Value v{node_count(), 0};
  nodes_.push_back({&port_op(kind), {}, {std::move(type)}, {}, {}, std::move(loc)});
  ports_.push_back({std::move(name), kind, v, true});
  return v;
}

Result<Value> Graph::input(std::string name, TensorType type, Loc loc) {
  return leaf(PortKind::input, std::move(name), std::move(type), std::move(loc));
}
Result<Value> Graph::param(std::string name, TensorType type, Loc loc) {
  return leaf(PortKind::param, std::move(name), std::move(type), std::move(loc));
}
Result<Value> Graph::state(std::string name, TensorType type, Loc loc) {
  return leaf(PortKind::state, std::move(name), std::move(type), std::move(loc));
}

Status Graph::set_resident(std::string_view state, bool resident) {
  for (Port& p : ports_) {
    if (p.name != state || p.kind != PortKind::state) continue;
    p.resident = resident;
    return ok();
  }
  return make_error(Code::not_found, "no state is named '" + std::string(state) + "'");
}

Status Graph::output(std::string name, Value value) {
  if (name.empty()) return make_error(Code::invalid, "output without a name");
  if (!holds(value)) return make_error(Code::invalid, "output '" + name + "' is no value of the graph");
  for (const OutputPort& o : outputs_) {
    if (o.name == name) return make_error(Code::invalid, "output '" + name + "': the name is taken");
  }
  outputs_.push_back({std::move(name), value});
  return ok();
}

Status Graph::update(std::string_view state, Value next) {
  const std::string what = "update of '" + std::string(state) + "'";
  const Port* p = port(state);
  if (!p || p->kind != PortKind::state) return make_error(Code::not_found, what + ": no state has this name");
  if (!holds(next)) return make_error(Code::invalid, what + " is no value of the graph");
  for (const StateUpdate& u : updates_) {
    if (u.state == state) return make_error(Code::invalid, what + ": it is updated already");
  }
  if (!same_type(*dims, type(p->value), type(next))) {
    return make_error(
        Code::invalid,
        what + ": the state is " + type_text(*dims, type(p->value)) + ", the new value " + type_text(*dims, type(next)),
        node_text(*this, next.node));
  }
  updates_.push_back({std::string(state), next});
  return ok();
}

bool Graph::holds(Value v) const { return v.node < nodes_.size() && v.out < nodes_[v.node].out.size(); }

const Port* Graph::port(std::string_view name) const {
  for (const Port& p : ports_) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

const Port* Graph::port_of(Value value) const {
  for (const Port& p : ports_) {
    if (p.value == value) return &p;
  }
  return nullptr;
}

Result<std::vector<Value>> Graph::add(const OpDef& op, std::vector<Value> in, std::vector<Attr> attrs, Loc loc,
                                      std::vector<std::unique_ptr<Graph>> regions) {
  Node node{&op, std::move(in), {}, std::move(attrs), std::move(regions), std::move(loc)};
  std::vector<Guard> fresh;
  auto checked = complete_attrs(op, node.attrs);
  if (checked) {
    auto types = infer_node(*this, node, fresh);
    if (types) {
      node.out = std::move(*types);
    } else {
      checked = types.take_error();
    }
  }
  if (!checked) {
    Error e = checked.take_error();
    e.where = node_text(node_count(), op.name, node.loc);
    return e;
  }
  for (Guard& g : fresh) add_guard(guards, std::move(g));
  const uint32_t id = node_count();
  std::vector<Value> results;
  for (size_t i = 0; i < node.out.size(); ++i) results.push_back({id, static_cast<uint16_t>(i)});
  nodes_.push_back(std::move(node));
  return results;
}

namespace {

bool same_pair(const Guard& g, const Guard& h) { return (g.a == h.a && g.b == h.b) || (g.a == h.b && g.b == h.a); }

}  // namespace

void add_guard(std::vector<Guard>& guards, Guard g) {
  // One test is enough; it names the first place that needs it.
  if (!has_guard(guards, g)) guards.push_back(std::move(g));
}

bool has_guard(const std::vector<Guard>& guards, const Guard& g) {
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& h) { return same_pair(g, h); });
}

namespace {

// Depth first without recursion: models are thousands of nodes deep.
class Walk {
 public:
  explicit Walk(const Graph& g) : g_(g), late_(g), seen_(g.node_count(), false) {}
  std::vector<uint32_t> order;

  void leaf(uint32_t id) {
    if (seen_[id]) return;
    seen_[id] = true;
    order.push_back(id);
  }
  void from(uint32_t root) {
    if (root >= seen_.size() || seen_[root]) return;
    seen_[root] = true;
    stack_.push_back({root, 0});
    while (!stack_.empty()) {
      auto& [id, next] = stack_.back();
      const std::optional<uint32_t> before = needed(id, next++);
      if (!before) {
        order.push_back(id);
        stack_.pop_back();
        continue;
      }
      const uint32_t child = *before;
      if (child < seen_.size() && !seen_[child]) {
        seen_[child] = true;
        stack_.push_back({child, 0});
      }
    }
  }

 private:
  // The operands' nodes, then those that give the node's late sizes.
  std::optional<uint32_t> needed(uint32_t id, size_t n) {
    const auto& in = g_.node(id).in;
    if (n < in.size()) return in[n].node;
    if (late_.none()) return std::nullopt;
    if (n == in.size()) waits_[id] = late_.of(g_.node(id));
    const std::vector<uint32_t>& symbols = waits_[id];
    for (n -= in.size(); n < symbols.size(); ++n) {
      if (const auto giver = late_.givers().find(symbols[n]); giver != late_.givers().end()) return giver->second;
    }
    return std::nullopt;
  }

  const Graph& g_;
  const LateSizes late_;
  std::map<uint32_t, std::vector<uint32_t>> waits_;  // late symbols of the nodes on the stack
  std::vector<bool> seen_;
  std::vector<std::pair<uint32_t, size_t>> stack_;
};

}  // namespace

std::vector<uint32_t> Graph::order() const {
  Walk walk(*this);
  for (const Port& p : ports_) walk.leaf(p.value.node);
  for (const OutputPort& o : outputs_) walk.from(o.value.node);
  for (const StateUpdate& u : updates_) walk.from(u.next.node);
  return std::move(walk.order);
}

std::vector<std::vector<uint32_t>> Graph::users() const {
  std::vector<std::vector<uint32_t>> out(nodes_.size());
  std::vector<uint32_t> live = order();
  std::sort(live.begin(), live.end());
  for (uint32_t id : live) {
    for (Value v : nodes_[id].in) {
      if (out[v.node].empty() || out[v.node].back() != id) out[v.node].push_back(id);
    }
  }
  return out;
}

void Graph::replace(Value from, Value to) {
  TERN_CHECK(holds(from) && holds(to), "replace: no value of the graph");
  if (from == to) return;
  TERN_CHECK(same_type(*dims, type(from), type(to)), "replace: " + type_text(*dims, type(from)) + " by " +
                                                         type_text(*dims, type(to)) + " in " +
                                                         node_text(*this, from.node));
  for (uint32_t id = 0; id < nodes_.size(); ++id) {
    if (id != to.node) std::replace(nodes_[id].in.begin(), nodes_[id].in.end(), from, to);
  }
  for (OutputPort& o : outputs_) {
    if (o.value == from) o.value = to;
  }
  for (StateUpdate& u : updates_) {
    if (u.next == from) u.next = to;
  }
}

void Graph::compact() {
  const std::vector<uint32_t> live = order();
  std::vector<uint32_t> renamed(nodes_.size(), ~0u);
  std::vector<Node> kept;
  kept.reserve(live.size());
  for (uint32_t id : live) {
    renamed[id] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(nodes_[id]));
  }
  auto rename = [&](Value& v) { v.node = renamed[v.node]; };
  for (Node& n : kept) std::for_each(n.in.begin(), n.in.end(), rename);
  for (Port& p : ports_) rename(p.value);
  for (OutputPort& o : outputs_) rename(o.value);
  for (StateUpdate& u : updates_) rename(u.next);
  nodes_ = std::move(kept);
}

}  // namespace tern
