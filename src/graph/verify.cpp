// Inference of one node, and the verifier of whole graphs.
#include <set>

#include "graph/attrs.h"
#include "graph/build.h"
#include "graph/op.h"
#include "graph/sizes/late.h"
#include "graph/text/text.h"

namespace tern {
namespace {

Error invalid(const OpDef& op, const std::string& text) {
  return make_error(Code::invalid, std::string(op.name) + ": " + text);
}

Status check_operands(const Graph& g, const Node& node) {
  const OpDef& op = *node.op;
  const auto n = static_cast<int>(node.in.size());
  if (n < op.min_in || (op.max_in >= 0 && n > op.max_in)) {
    std::string wants = std::to_string(op.min_in);
    if (op.max_in < 0) wants += " or more";
    if (op.max_in > op.min_in) wants += " to " + std::to_string(op.max_in);
    return invalid(op, "takes " + wants + " operands, got " + std::to_string(n));
  }
  for (size_t i = 0; i < node.in.size(); ++i) {
    if (!g.holds(node.in[i])) return invalid(op, "operand " + std::to_string(i) + " is no value of the graph");
  }
  for (size_t i = 0; i < node.regions.size(); ++i) {
    const auto& region = node.regions[i];
    const std::string which = "region " + std::to_string(i);
    if (!region) return invalid(op, which + " is empty");
    if (region->dims != g.dims) return invalid(op, which + " has a table of dims of its own");
    for (const Port& p : region->ports()) {
      if (p.kind != PortKind::input)
        return invalid(
            op, which + " sees its arguments only, '" + p.name + "' is a " + std::string(port_kind_name(p.kind)));
    }
  }
  return ok();
}

}  // namespace

Result<std::vector<TensorType>> infer_node(const Graph& g, const Node& node, std::vector<Guard>& guards) {
  const OpDef& op = *node.op;
  if (op.kind == OpKind::leaf && &op != &kConstantOp)
    return invalid(op, "is made by Graph::" + std::string(op.name) + ", not by add");
  if (!op.infer) return make_error(Code::internal, std::string(op.name) + ": the op has no type rule");
  TERN_OK(check_operands(g, node));
  std::vector<TensorType> in;
  in.reserve(node.in.size());
  for (Value v : node.in) in.push_back(g.type(v));
  InferCtx ctx{in, node.attrs, node.regions, *g.dims, guards, op.name, node.loc};
  TERN_TRY(std::vector<TensorType> types, op.infer(ctx));
  if (types.size() > UINT16_MAX) return invalid(op, "has too many results");
  for (const TensorType& t : types) {
    if (auto s = check_type(*g.dims, t); !s) return invalid(op, "the result would be " + s.error().text);
  }
  return types;
}

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& g) : g_(g), late_(g) {}

  Status run() {
    for (uint32_t id = 0; id < g_.node_count(); ++id) TERN_OK(located(id, references(id)));
    TERN_OK(ports());
    TERN_OK(results());
    TERN_OK(acyclic());
    TERN_OK(late_sizes());
    for (uint32_t id : g_.order()) {
      if (g_.node(id).op->kind == OpKind::leaf && g_.node(id).op != &kConstantOp) continue;
      TERN_OK(located(id, inferred(id)));
    }
    return ok();
  }

 private:
  Status located(uint32_t id, Status s) const {
    if (s) return s;
    Error e = s.take_error();
    const std::string inner = e.where;
    e.where = g_.node(id).op ? node_text(g_, id) : "node " + std::to_string(id);
    if (inner.starts_with("region")) e.where += ", " + inner;
    return e;
  }

  Status references(uint32_t id) const {
    const Node& n = g_.node(id);
    if (!n.op) return make_error(Code::invalid, "the node has no op");
    for (size_t i = 0; i < n.in.size(); ++i) {
      if (!g_.holds(n.in[i])) return invalid(*n.op, "operand " + std::to_string(i) + " is no value of the graph");
    }
    return ok();
  }

  Status ports() const {
    std::set<std::string_view> names;
    std::set<uint32_t> leaves;
    for (const Port& p : g_.ports()) {
      if (p.name.empty() || !names.insert(p.name).second)
        return make_error(Code::invalid, "two leaves are named '" + p.name + "'");
      if (!g_.holds(p.value) || g_.at(p.value).op != &port_op(p.kind) || !leaves.insert(p.value.node).second) {
        return make_error(Code::invalid,
                          "'" + p.name + "' names no " + std::string(port_kind_name(p.kind)) + " of its own");
      }
      if (auto s = check_type(*g_.dims, g_.type(p.value)); !s)
        return make_error(s.error().code, s.error().text, "'" + p.name + "'");
    }
    for (uint32_t id = 0; id < g_.node_count(); ++id) {
      const OpDef* op = g_.node(id).op;
      const bool leaf = op == &kInputOp || op == &kParamOp || op == &kStateOp;
      if (leaf && !leaves.contains(id)) return make_error(Code::invalid, "a leaf without a name", node_text(g_, id));
    }
    return ok();
  }

  Status results() const {
    std::set<std::string_view> names;
    for (const OutputPort& o : g_.outputs()) {
      if (o.name.empty() || !names.insert(o.name).second)
        return make_error(Code::invalid, "two outputs are named '" + o.name + "'");
      if (!g_.holds(o.value)) return make_error(Code::invalid, "output '" + o.name + "' is no value of the graph");
    }
    std::set<std::string_view> states;
    for (const StateUpdate& u : g_.updates()) {
      const std::string what = "update of '" + u.state + "'";
      const Port* p = g_.port(u.state);
      if (!p || p->kind != PortKind::state) return make_error(Code::invalid, what + ": no state has this name");
      if (!states.insert(u.state).second) return make_error(Code::invalid, what + ": it is updated twice");
      if (!g_.holds(u.next)) return make_error(Code::invalid, what + " is no value of the graph");
      if (!same_type(*g_.dims, g_.type(p->value), g_.type(u.next))) {
        return make_error(Code::invalid,
                          what + ": the state is " + type_text(*g_.dims, g_.type(p->value)) + ", the new value " +
                              type_text(*g_.dims, g_.type(u.next)),
                          node_text(g_, u.next.node));
      }
    }
    return ok();
  }

  // The nodes that come first: those of the operands and those that give late sizes.
  std::vector<uint32_t> needed(uint32_t id) const {
    std::vector<uint32_t> out;
    for (const Value v : g_.node(id).in) out.push_back(v.node);
    if (late_.none()) return out;
    for (const uint32_t symbol : late_.of(g_.node(id))) {
      if (const auto giver = late_.givers().find(symbol); giver != late_.givers().end()) out.push_back(giver->second);
    }
    return out;
  }

  // Each late size has one giver; what exists before the run has none.
  Status late_sizes() const {
    std::set<uint32_t> given;
    for (const uint32_t id : g_.order()) {
      const Node& n = g_.node(id);
      if (const auto symbol = late_symbol(*g_.dims, n); symbol && !given.insert(*symbol).second)
        return make_error(Code::invalid, "the late size " + g_.dims->symbols()[*symbol].name + " is given twice",
                          node_text(g_, id));
      for (const uint32_t symbol : late_.of(n)) {
        const std::string& name = g_.dims->symbols()[symbol].name;
        const Port* port = n.op->kind == OpKind::leaf ? g_.port_of({id, 0}) : nullptr;
        if (port)
          return make_error(Code::invalid, "'" + port->name + "' exists before the late size " + name + " is known");
        if (!late_.givers().contains(symbol))
          return make_error(Code::invalid, "no node gives the late size " + name, node_text(g_, id));
      }
    }
    return ok();
  }

  Status acyclic() const {
    enum : uint8_t { fresh, open, done };
    std::vector<uint8_t> mark(g_.node_count(), fresh);
    std::vector<std::pair<uint32_t, size_t>> stack;
    for (uint32_t root = 0; root < g_.node_count(); ++root) {
      if (mark[root] != fresh) continue;
      mark[root] = open;
      stack.push_back({root, 0});
      while (!stack.empty()) {
        auto& [id, next] = stack.back();
        const std::vector<uint32_t> before = needed(id);
        if (next == before.size()) {
          mark[id] = done;
          stack.pop_back();
          continue;
        }
        const uint32_t child = before[next++];
        if (mark[child] == open)
          return make_error(Code::invalid, "the node depends on its own result", node_text(g_, child));
        if (mark[child] == fresh) {
          mark[child] = open;
          stack.push_back({child, 0});
        }
      }
    }
    return ok();
  }

  Status inferred(uint32_t id) const {
    const Node& n = g_.node(id);
    std::vector<Attr> attrs = n.attrs;
    if (attrs.size() != n.op->attrs.size()) return invalid(*n.op, "attributes are incomplete");
    TERN_OK(complete_attrs(*n.op, attrs));
    for (size_t i = 0; i < n.regions.size(); ++i) {
      if (!n.regions[i]) return invalid(*n.op, "region " + std::to_string(i) + " is empty");
      if (auto s = n.regions[i]->verify(); !s) {
        Error e = s.take_error();
        e.where = "region " + std::to_string(i) + (e.where.empty() ? "" : ", " + e.where);
        return e;
      }
    }
    std::vector<Guard> guards;
    TERN_TRY(const std::vector<TensorType> types, infer_node(g_, n, guards));
    if (types.size() != n.out.size()) {
      return invalid(*n.op, "has " + std::to_string(n.out.size()) + " results, its type rule gives " +
                                std::to_string(types.size()));
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (same_type(*g_.dims, types[i], n.out[i])) continue;
      return invalid(*n.op, "result " + std::to_string(i) + " is " + type_text(*g_.dims, n.out[i]) +
                                ", its type rule gives " + type_text(*g_.dims, types[i]));
    }
    for (const Guard& guard : guards) {
      if (!has_guard(g_.guards, guard)) {
        return invalid(*n.op, "the guard " + g_.dims->text(guard.a) + " == " + g_.dims->text(guard.b) + " is lost");
      }
    }
    return ok();
  }

  const Graph& g_;
  const LateSizes late_;
};

}  // namespace

Status Graph::verify() const {
  if (!dims) return make_error(Code::invalid, "the graph has no table of dims");
  return Verifier(*this).run();
}

}  // namespace tern
