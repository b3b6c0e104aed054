#include <set>

#include "graph/attrs.h"
#include "graph/text/text.h"
#include "passes/passes.h"
#include "passes/rewrite/rewrite.h"

namespace tern {
namespace {

Status decompose_node(Graph& g, uint32_t id, const std::string& refusal) {
  const Node& n = g.node(id);
  const std::string where = node_text(g, id);
  if (!n.op->decompose) {
    return make_error(Code::unsupported,
                      std::string(n.op->name) + ": no candidate takes it (" + refusal + ") and it has no decomposition",
                      where);
  }
  Builder b(g);
  b.scope(n.loc.text);
  // A copy: adding nodes moves the node.
  Node copy{n.op, n.in, n.out, n.attrs, {}, n.loc};
  for (const auto& r : n.regions) copy.regions.push_back(std::make_unique<Graph>(r->clone()));
  auto parts = copy.op->decompose(b, copy, copy.in);
  if (b.failed()) {
    // The builder's own error is nearer to the cause than what the decomposition made of it.
    return make_error(b.error()->code, std::string(copy.op->name) + " decomposes into: " + b.error()->text, where);
  }
  if (!parts) {
    Error e = parts.take_error();
    if (e.where.empty()) e.where = where;
    return e;
  }
  if (parts->size() != copy.out.size())
    return make_error(Code::internal, std::string(copy.op->name) + ": its decomposition has other results", where);
  for (uint16_t i = 0; i < parts->size(); ++i) {
    const Value part = (*parts)[i];
    if (!g.holds(part) || !same_type(*g.dims, g.type({id, i}), g.type(part))) {
      return make_error(Code::internal,
                        std::string(copy.op->name) + ": its decomposition gives " +
                            (g.holds(part) ? type_text(*g.dims, g.type(part)) : "nothing") + " instead of " +
                            type_text(*g.dims, copy.out[i]),
                        where);
    }
    g.replace({id, i}, part);
  }
  return ok();
}

Status decompose_one(Graph& g, const Target& target) {
  std::set<uint32_t> taken;
  // Decompositions may hold composite nodes themselves; each round goes one level down.
  constexpr int kMaxLevels = 16;
  for (int level = 0; level < kMaxLevels; ++level) {
    bool changed = false;
    for (uint32_t id : g.order()) {
      if (g.node(id).op->kind != OpKind::composite || taken.contains(id)) continue;
      std::string refusal = "there are none";
      if (target.takes) {
        auto bid = target.takes(target.ctx, g, {id, 0});
        if (bid) {
          taken.insert(id);
          continue;
        }
        refusal = bid.why();
      }
      TERN_OK(decompose_node(g, id, refusal));
      changed = true;
    }
    if (!changed) return ok();
  }
  return make_error(Code::internal, "decompositions do not come to an end");
}

}  // namespace

Status decompose(Graph& graph, const Target& target) {
  return for_each_graph(graph, [&](Graph& g) { return decompose_one(g, target); });
}

}  // namespace tern
