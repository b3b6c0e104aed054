#include <vector>

#include "passes/canonical/rules.h"
#include "passes/passes.h"

namespace tern {

Status canonicalise(Graph& graph, const Target&) {
  std::vector<Rule> rules;
  for (std::span<const Rule> list : {scalar_forms(), movement_forms(), matrix_forms()})
    rules.insert(rules.end(), list.begin(), list.end());
  return rewrite(graph, rules);
}

}  // namespace tern
