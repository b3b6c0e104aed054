#include <vector>

#include "passes/passes.h"
#include "passes/simplify/rules.h"

namespace tern {

Status simplify(Graph& graph, const Target&) {
  std::vector<Rule> rules;
  for (std::span<const Rule> list : {scalar_identities(), movement_identities()})
    rules.insert(rules.end(), list.begin(), list.end());
  return rewrite(graph, rules);
}

}  // namespace tern
