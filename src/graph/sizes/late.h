// Late sizes: symbols whose value a node of the graph gives. Whoever's sizes name one waits for that node, though no
// value leads from it to him.
#pragma once

#include <map>
#include <vector>

#include "tern/graph.h"

namespace tern {

class LateSizes {
 public:
  explicit LateSizes(const Graph& graph);  // looks at all nodes, dead ones too
  bool none() const { return givers_.empty(); }
  // Symbol -> the node that gives its value; the first, where several do.
  const std::map<uint32_t, uint32_t>& givers() const { return givers_; }
  // Late symbols that several nodes give; a graph must have none.
  const std::vector<uint32_t>& given_twice() const { return twice_; }
  // The late symbols among the dims, ascending.
  std::vector<uint32_t> in(std::span<const Dim> dims) const;
  // Those in the node's types and attributes, without the one it gives itself.
  std::vector<uint32_t> of(const Node& node) const;

 private:
  const DimTable& dims_;
  std::map<uint32_t, uint32_t> givers_;
  std::vector<uint32_t> twice_;
};

// The late symbol that the node gives a value; nullopt: none.
std::optional<uint32_t> late_symbol(const DimTable& dims, const Node& node);

}  // namespace tern
