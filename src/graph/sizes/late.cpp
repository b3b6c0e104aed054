#include "graph/sizes/late.h"

#include <set>

#include "graph/op.h"

namespace tern {

std::optional<uint32_t> late_symbol(const DimTable& dims, const Node& node) {
  if (!node.op || node.op->fx.gives < 0 || node.attrs.size() <= static_cast<size_t>(node.op->fx.gives))
    return std::nullopt;
  const auto* d = std::get_if<Dim>(&node.attrs[static_cast<size_t>(node.op->fx.gives)]);
  return d ? dims.as_symbol(*d) : std::nullopt;
}

LateSizes::LateSizes(const Graph& graph) : dims_(*graph.dims) {
  for (uint32_t id = 0; id < graph.node_count(); ++id) {
    const auto symbol = late_symbol(dims_, graph.node(id));
    if (symbol && !givers_.emplace(*symbol, id).second) twice_.push_back(*symbol);
  }
}

std::vector<uint32_t> LateSizes::in(std::span<const Dim> dims) const {
  std::set<uint32_t> out;
  for (const Dim d : dims) {
    if (!d.is_expr()) continue;
    for (const uint32_t s : dims_.symbols_of(d)) {
      if (dims_.symbols()[s].late) out.insert(s);
    }
  }
  return {out.begin(), out.end()};
}

std::vector<uint32_t> LateSizes::of(const Node& node) const {
  std::vector<Dim> dims;
  for (const TensorType& t : node.out) dims.insert(dims.end(), t.shape.begin(), t.shape.end());
  for (const Attr& a : node.attrs) {
    if (const auto* d = std::get_if<Dim>(&a)) dims.push_back(*d);
    if (const auto* s = std::get_if<Shape>(&a)) dims.insert(dims.end(), s->begin(), s->end());
  }
  std::vector<uint32_t> out = in(dims);
  if (const auto own = late_symbol(dims_, node)) std::erase(out, *own);
  return out;
}

}  // namespace tern
