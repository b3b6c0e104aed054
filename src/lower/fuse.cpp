#include "lower/fuse.h"

#include <algorithm>
#include <functional>

namespace tern::lowering {
namespace {

Origin origin_of(const FuseState& s, Value v) {
  const OpDef* op = s.graph.node(v.node).op;
  if (op == &kParamOp || op == &kConstantOp) return Origin::param;
  if (op == &kStateOp) return Origin::state;
  if (op == &kInputOp) return Origin::io;
  return Origin::temp;
}

std::string where(const Graph& g, uint32_t node) { return "node " + std::to_string(node) + " (" + std::string(g.node(node).op->name) + ") " + g.node(node).loc.text; }

// In-place updates: the result lives in the state's buffer, every reader of the old value comes first.
Status place_states(FuseState& s, Grouping& out) {
  for (size_t g = 0; g < s.groups.size(); ++g) {
    Group& group = s.groups[g];
    if (group.problem.family != Family::store) continue;
    const Value before = group.values[0], result = group.values.back();
    const auto root = [&](Value v) {
      for (auto it = out.same_buffer.find(v); it != out.same_buffer.end(); it = out.same_buffer.find(v)) v = it->second;
      return v;
    };
    const Value home = root(before);
    if (origin_of(s, home) == Origin::param || origin_of(s, home) == Origin::io) {
      return make_error(Code::unsupported, "store_rows writes into an input or parameter; make it a state", where(s.graph, result.node));
    }
    out.same_buffer[result] = before;
    group.values.pop_back();
    group.problem.operands.pop_back();
    group.problem.parts[0].outs.clear();
    for (size_t r = 0; r < s.groups.size(); ++r) {
      if (r == g) continue;
      for (size_t i = 0; i < s.groups[r].values.size(); ++i) {
        if (s.groups[r].values[i] == before && s.groups[r].problem.operands[i].access == Access::read) group.after.push_back(static_cast<uint32_t>(r));
      }
    }
  }
  return ok();
}

Status name_outputs(FuseState& s, Grouping& out) {
  const auto root = [&](Value v) {
    for (auto it = out.same_buffer.find(v); it != out.same_buffer.end(); it = out.same_buffer.find(v)) v = it->second;
    return v;
  };
  for (const StateUpdate& u : s.graph.updates()) {
    const Value state = s.graph.port(u.state)->value;
    const Value next = root(s.base_of(u.next));
    if (next == state) continue;
    out.copies.push_back({u.next, u.state, true});
  }
  for (const Port& port : s.graph.ports()) {
    if (port.kind != PortKind::state) continue;
    const bool updated = std::any_of(s.graph.updates().begin(), s.graph.updates().end(), [&](const StateUpdate& u) { return u.state == port.name && root(s.base_of(u.next)) == port.value; });
    const bool written = std::any_of(out.same_buffer.begin(), out.same_buffer.end(), [&](const auto& e) { return root(e.first) == port.value; });
    if (written && !updated) {
      return make_error(Code::unsupported, "state '" + port.name + "' is written in place by store_rows, but the graph does not keep that as its next value; update the state with the result", "state " + port.name);
    }
  }
  for (const OutputPort& o : s.graph.outputs()) {
    const bool temp = origin_of(s, root(o.value)) == Origin::temp && !out.same_buffer.contains(o.value);
    if (temp && !out.outputs.contains(o.value)) {
      out.outputs[o.value] = o.name;
    } else {
      out.copies.push_back({o.value, o.name, false});
    }
  }
  return ok();
}

// Depth-first over values and `after`; a cycle means an in-place update whose old value is still wanted.
Result<std::vector<size_t>> sorted(const FuseState& s, const Grouping& out) {
  const size_t n = s.groups.size();
  std::map<Value, std::vector<size_t>> writers;
  for (size_t g = 0; g < n; ++g) {
    for (size_t i = 0; i < s.groups[g].values.size(); ++i) {
      if (s.groups[g].problem.operands[i].access == Access::write) writers[s.groups[g].values[i]].push_back(g);
    }
  }
  std::map<Value, size_t> stores;  // result of an in-place update -> its group
  for (size_t g = 0; g < n; ++g) {
    if (s.groups[g].problem.family != Family::store) continue;
    for (const auto& [result, before] : out.same_buffer) {
      if (before == s.groups[g].values[0]) stores[result] = g;
    }
  }
  std::vector<size_t> order;
  std::vector<uint8_t> mark(n);
  std::optional<size_t> bad;
  const std::function<void(size_t)> visit = [&](size_t g) {
    if (mark[g] == 2 || bad) return;
    if (mark[g] == 1) {
      bad = g;
      return;
    }
    mark[g] = 1;
    for (size_t i = 0; i < s.groups[g].values.size(); ++i) {
      const Value v = s.groups[g].values[i];
      if (const auto it = stores.find(v); it != stores.end() && it->second != g) visit(it->second);
      const auto w = writers.find(v);
      if (w == writers.end()) continue;
      // Several writers of one value (concat, pad) keep their order; readers follow the last.
      const bool writes = s.groups[g].problem.operands[i].access == Access::write;
      for (const size_t other : w->second) {
        if (writes ? other < g : other != g) visit(other);
      }
    }
    for (const uint32_t a : s.groups[g].after) visit(a);
    mark[g] = 2;
    order.push_back(g);
  };
  for (size_t g = 0; g < n; ++g) visit(g);
  if (bad) {
    return make_error(Code::unsupported, "a state is updated in place while its old value is still read by what depends on the new one; drop one of both uses",
                      s.groups[*bad].label);
  }
  return order;
}

}  // namespace

std::string label_of(const Graph& graph, uint32_t node) {
  const Node& n = graph.node(node);
  return n.loc.text.empty() ? std::string(n.op->name) : n.loc.text;
}

Operand operand_of(const FuseState& s, Value v, TensorType type, Role role, Access access) {
  Operand o;
  o.type = std::move(type);
  o.role = role;
  o.origin = origin_of(s, v);
  o.access = access;
  return o;
}

void add_loads(FuseState& s, const Expr& expr, ScalarExpr& code, Group& group, Role role) {
  code = expr.code;
  for (ScalarExpr::Load& l : code.loads) {
    const Value v = expr.loads[l.operand].value;
    auto at = std::find(group.values.begin(), group.values.end(), v);
    if (at == group.values.end()) {
      group.problem.operands.push_back(operand_of(s, v, s.graph.type(v), role, Access::read));
      group.values.push_back(v);
      at = group.values.end() - 1;
    }
    l.operand = static_cast<uint16_t>(at - group.values.begin());
  }
}

Status make_anchors(FuseState& s) {
  for (const uint32_t id : s.order) {
    if (!s.is_anchor(id)) continue;
    const Node& node = s.graph.node(id);
    const AnchorFn make = find_anchor(node.op->name);
    if (make == nullptr) {
      if (node.op->name == "reduce" || node.op->name == "concat" || node.op->name == "pad") continue;
      return make_error(Code::unsupported, "op " + std::string(node.op->name) + " has no kernel family and no decomposition", where(s.graph, id));
    }
    TERN_TRY(Anchor anchor, make(s.graph, s.dims, id));
    Group group;
    group.label = label_of(s.graph, id);
    group.problem = std::move(anchor.problem);
    for (size_t i = 0; i < anchor.inputs.size(); ++i) {
      AnchorOperand& in = anchor.inputs[i];
      const Value base = s.base_of(in.value);
      group.problem.operands.push_back(operand_of(s, base, in.type, in.role, anchor.in_place && i == 0 ? Access::update : Access::read));
      group.values.push_back(base);
    }
    for (uint16_t r = 0; r < anchor.outs.size(); ++r) {
      if (r < group.problem.parts.size() || group.problem.parts.size() == 1) {
        Output out;
        out.operand = static_cast<uint16_t>(group.values.size());
        group.problem.parts[0].outs.push_back(out);
      }
      group.problem.operands.push_back(operand_of(s, {id, r}, anchor.outs[r], Role::out, Access::write));
      group.values.push_back({id, r});
    }
    s.groups.push_back(std::move(group));
  }
  return ok();
}

Result<Grouping> fuse(const Graph& graph, const Caps& caps) {
  FuseState s(graph, caps);
  mark_roots(s);
  TERN_OK(make_regions(s));
  TERN_OK(make_anchors(s));
  absorb_epilogues(s);
  merge_parts(s);
  collapse(s);
  Grouping out;
  TERN_OK(place_states(s, out));
  TERN_OK(name_outputs(s, out));
  TERN_TRY(const std::vector<size_t> order, sorted(s, out));
  for (const size_t g : order) {
    out.groups.push_back(std::move(s.groups[g]));
    out.groups.back().after.clear();
  }
  return out;
}

}  // namespace tern::lowering
