// Local rewriting: rules look at one node and name the value that replaces its result. Shared by canonicalise and
// simplify.
#pragma once

#include <optional>
#include <span>

#include "core/scalar.h"
#include "graph/op.h"

namespace tern {

// Calls f for every region below the graph, innermost first, then for the graph itself.
template <class F>
Status for_each_graph(Graph& graph, F&& f) {
  for (uint32_t id : graph.order()) {
    for (const auto& region : graph.node(id).regions) TERN_OK(for_each_graph(*region, f));
  }
  return f(graph);
}

// One number that a value holds everywhere.
struct Uniform {
  DType dtype = DType::f32;
  double f = 0;             // floats
  int64_t i = 0;            // integers and bool
  bool is(double v) const;  // equal, of either kind; 0 is +0 here, -0 only through negative_zero()
  bool negative_zero() const;
};

class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph) {}
  Graph& graph() { return graph_; }
  const Node& node(uint32_t id) const { return graph_.node(id); }
  const TensorType& type(Value v) const { return graph_.type(v); }

  // The defining node where it is of this op; null otherwise.
  const Node* def(Value v, std::string_view op) const;
  const Node* def(Value v, ScalarOp op) const;
  bool is(const Node& n, ScalarOp op) const { return n.op->scalar == static_cast<int16_t>(op); }
  // Sees through views and broadcasts; nullopt: no constant, several numbers, or too many to look at.
  std::optional<Uniform> uniform(Value v) const;
  // A constant, or a view of one.
  bool constant(Value v) const;
  // Adds a node; nullopt where this build has no such op or its type rule refuses. Node references are void afterwards.
  std::optional<Value> make(std::string_view op, std::vector<Value> in, std::vector<Attr> attrs, Loc loc);

 private:
  Graph& graph_;
};

// Nullopt: does not apply. The value may be an old one or one just made; where its type is not provably the old one it
// is not used.
using Rule = std::optional<Value> (*)(Rewriter& rw, uint32_t node);

// Applies the rules to all nodes and regions until none applies.
Status rewrite(Graph& graph, std::span<const Rule> rules);

}  // namespace tern
