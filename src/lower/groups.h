// What fuse makes and choose reads: groups of nodes, each one Problem.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/caps.h"
#include "graph/op.h"
#include "program/problem.h"

namespace tern::lowering {

// One launch-to-be. values: for every operand of the Problem the stored graph value it is; its type there may be another shape
// of the same elements.
struct Group {
  Problem problem;  // sizes unbounded, layouts unset
  std::vector<Value> values;
  std::string label;
  std::vector<uint32_t> after;  // groups that come first though no value says so (in-place states)
};

struct Grouping {
  std::vector<Group> groups;  // in an order that respects values and `after`
  // Values that live in another value's buffer: results of in-place state updates.
  std::map<Value, Value> same_buffer;
  // Copies at the end of a list: outputs and states that are plain leaves, contiguous views, or values named twice.
  struct CopyOut {
    Value from;
    std::string name;
    bool state;
  };
  std::vector<CopyOut> copies;
  std::map<Value, std::string> outputs;  // stored values that are an output's own buffer
};

Result<Grouping> fuse(const Graph& graph, const Caps& caps);

// ---- pieces that fuse is made of

IndexMap dense_map(DimTable& dims, const Shape& shape);
bool same_map(const DimTable& dims, const IndexMap& a, const IndexMap& b);
Dim element_count(DimTable& dims, const Shape& shape);

// The attribute by name; the op's own list says where it stands.
template <class T>
const T& attr(const Node& node, std::string_view name) {
  for (size_t i = 0; i < node.op->attrs.size(); ++i) {
    if (node.op->attrs[i].name == name) return std::get<T>(node.attrs[i]);
  }
  static const T kNone{};
  return kNone;
}

// How a node that is neither elementwise nor a view becomes a Problem. One row an op in anchors.cpp.
struct AnchorOperand {
  Value value;      // of the graph
  TensorType type;  // as the Problem sees it: another shape of the same elements
  Role role = Role::x;
};
struct Anchor {
  Problem problem;                     // family, extent, desc, parts without outs; operands are made from below
  std::vector<AnchorOperand> inputs;   // in operand order
  std::vector<TensorType> outs;        // one per result of the node
  bool in_place = false;               // result 0 is inputs[0]'s buffer, updated
};
using AnchorFn = Result<Anchor> (*)(const Graph& graph, DimTable& dims, uint32_t node);
AnchorFn find_anchor(std::string_view op);

}  // namespace tern::lowering
