// What fuse makes and choose and memory read: groups of nodes, each one Problem. Plain data.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/caps.h"
#include "graph/op.h"
#include "program/problem.h"
#include "program/program.h"

namespace tern::lowering {

// One launch-to-be. values: for every operand of the Problem the stored graph value it is; its type there may be
// another shape of the same elements.
struct Group {
  Problem problem;  // sizes unbounded; layouts unset until choose
  std::vector<Value> values;
  std::string label;
  std::vector<uint32_t> after;  // groups that come first though no value says so (readers of what is overwritten)
  DeviceId device = 0;
  bool over = false;      // writes over what other groups wrote of the same value (pad): comes after them
  bool prepared = false;  // depends on params only: runs when they change
};

// A value that has to lie in a port's buffer beside its own, or instead of having one.
struct CopyOut {
  Value from;
  std::string name;
  bool state = false;
  // When the copy is made: a leaf that is overwritten in mid-run leaves before the first step; where its copy goes into
  // a state whose own old value is still wanted, it waits in a temporary (`saved`).
  bool early = false, saved = false;
};

// A late size: known once everything that writes the value has run.
struct LateBind {
  uint32_t symbol = 0;
  Value from;  // stored
  std::string label;
};

struct Grouping {
  std::vector<Group> groups;  // in an order that respects values and `after`
  std::vector<LateBind> late;
  // Values that live in another value's buffer: results of in-place state updates.
  std::map<Value, Value> same_buffer;
  std::vector<CopyOut> copies;
  std::map<Value, std::string> outputs;  // stored values that are an output's own buffer

  Value home(Value v) const {
    for (auto it = same_buffer.find(v); it != same_buffer.end(); it = same_buffer.find(v)) v = it->second;
    return v;
  }
};

// Would some candidate take this Problem in every range? Layouts are unset.
using Taken = std::function<bool(const Problem&)>;

// ---- small shared pieces

IndexMap dense_map(DimTable& dims, const Shape& shape);
// Of the same elements over axes of these extents; an axis of extent 1 has no stride.
bool same_map(const DimTable& dims, const IndexMap& a, const IndexMap& b, const Shape& axes);
// Every dim that the Problem is made of.
std::vector<Dim> dims_of(const Problem& problem);
Dim element_count(DimTable& dims, const Shape& shape);
// Where a value comes from, seen from a Problem.
Origin origin_of(const Graph& graph, Value v);
std::string label_of(const Graph& graph, uint32_t node);

// The attribute by name; the op's own list says where it stands.
template <class T>
const T& attr(const Node& node, std::string_view name) {
  for (size_t i = 0; i < node.op->attrs.size(); ++i) {
    if (node.op->attrs[i].name == name) return std::get<T>(node.attrs[i]);
  }
  static const T kNone{};
  return kNone;
}

}  // namespace tern::lowering
