#include <algorithm>
#include <map>

#include "base/hash.h"
#include "core/scalar.h"
#include "passes/passes.h"
#include "passes/rewrite/rewrite.h"

namespace tern {
namespace {

// Bit for bit the same either way round. min and max are not: of 0 and -0 the order decides.
bool commutes(const OpDef& op) {
  if (op.scalar < 0) return false;
  switch (static_cast<ScalarOp>(op.scalar)) {
    case ScalarOp::add:
    case ScalarOp::mul:
    case ScalarOp::eq:
    case ScalarOp::ne:
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor: return true;
    default: return false;
  }
}

struct Key {
  const OpDef* op;
  std::vector<Value> in;
  Hash contents;  // of a constant, so that large ones are compared only when they are likely equal
  auto operator<=>(const Key&) const = default;
};

Status cse_one(Graph& g) {
  std::map<Key, std::vector<uint32_t>> seen;
  for (uint32_t id : g.order()) {
    const Node& n = g.node(id);
    const bool leaf = n.op->kind == OpKind::leaf && n.op != &kConstantOp;
    if (leaf || n.op->fx.rng || !n.regions.empty()) continue;
    Key key{n.op, n.in, {}};
    if (n.op == &kConstantOp) {
      const auto& c = std::get<Const>(n.attrs[0]);
      if (c.data) key.contents = Hasher().bytes(*c.data).done();
    } else if (commutes(*n.op)) {
      std::sort(key.in.begin(), key.in.end());
    }
    std::vector<uint32_t>& candidates = seen[key];
    auto same = std::find_if(candidates.begin(), candidates.end(), [&](uint32_t other) {
      return g.node(other).attrs == n.attrs && g.node(other).out == n.out;
    });
    if (same == candidates.end()) {
      candidates.push_back(id);
      continue;
    }
    // In topological order the users of this node have not been looked at yet, so one sweep is enough.
    for (uint16_t i = 0; i < n.out.size(); ++i) g.replace({id, i}, {*same, i});
  }
  return ok();
}

}  // namespace

Status cse(Graph& graph, const Target&) { return for_each_graph(graph, cse_one); }

}  // namespace tern
