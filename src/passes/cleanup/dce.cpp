#include "passes/passes.h"
#include "passes/rewrite/rewrite.h"

namespace tern {

Status dce(Graph& graph, const Target&) {
  return for_each_graph(graph, [](Graph& g) {
    g.compact();
    // What became provable needs no test any more. A guard that is provably false stays: bind reports it with both
    // names.
    std::erase_if(g.guards, [&](const Guard& guard) { return g.dims->equal(guard.a, guard.b) == true; });
    return ok();
  });
}

}  // namespace tern
