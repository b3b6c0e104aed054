#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lower/expr.h"
#include "lower/groups.h"

namespace tern::lowering {

// What fuse's stages share.
struct FuseState {
  const Graph& graph;
  DimTable& dims;
  const Caps& caps;
  std::vector<uint32_t> order;
  Stored stored;
  std::vector<Group> groups;

  FuseState(const Graph& g, const Caps& c);
  bool is_leaf(uint32_t node) const;
  bool is_elementwise(uint32_t node) const { return graph.node(node).op->scalar >= 0; }
  bool is_view(uint32_t node) const { return graph.node(node).op->view != nullptr; }
  bool is_anchor(uint32_t node) const;
  bool live_output(Value v) const;  // an output or the next value of a state
  // The stored value whose bytes, in order, are this value's; the value itself where no contiguous view leads further.
  Value base_of(Value v) const;
};

// roots.cpp: decides which values get memory.
void mark_roots(FuseState& s);
// regions.cpp: one group per stored elementwise value or view, reduce, concat, pad.
Status make_regions(FuseState& s);
void collapse(FuseState& s);  // joins axes that every map of a region walks as one
Status make_anchors(FuseState& s);
// merge.cpp: epilogues move into matmuls; matmuls of one input become parts of one launch.
void absorb_epilogues(FuseState& s);
void merge_parts(FuseState& s);

// Numbers the loads of an expression as operands of a group.
void add_loads(FuseState& s, const Expr& expr, ScalarExpr& code, Group& group, Role role);
Operand operand_of(const FuseState& s, Value v, TensorType type, Role role, Access access);
std::string label_of(const Graph& graph, uint32_t node);

}  // namespace tern::lowering
