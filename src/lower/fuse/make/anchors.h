// How a node that is neither elementwise nor a view becomes a Problem of its own.
#pragma once

#include "lower/groups.h"

namespace tern::lowering {

struct AnchorOperand {
  Value value;      // of the graph
  TensorType type;  // as the Problem sees it: another shape of the same elements
  Role role = Role::x;
};
struct Anchor {
  Problem problem;                    // family, extent, desc, parts without outs; operands are made from below
  std::vector<AnchorOperand> inputs;  // in operand order
  std::vector<TensorType> outs;       // one per result of the node
  bool in_place = false;              // result 0 is inputs[0]'s buffer, updated
};
using AnchorFn = Result<Anchor> (*)(const Graph& graph, DimTable& dims, uint32_t node);
AnchorFn find_anchor(std::string_view op);  // null: regions take it

// The Problem with its operands, as it stands alone.
Problem standalone(const Graph& graph, const Anchor& anchor);

}  // namespace tern::lowering
