// Views and copies that change nothing.
#include <algorithm>

#include "passes/simplify/rules.h"

namespace tern {
namespace {

using V = std::optional<Value>;

std::vector<Dim> dense_strides(DimTable& dims, const Shape& shape) {
  std::vector<Dim> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = dims.mul(strides[i], shape[i]);
  return strides;
}

// A view whose map reads every element where it lies: a whole slice, a transpose of nothing, a reshape or broadcast to
// the own shape. Asked through the op's map, so that every view op is served.
V identity_view(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (!n.op->view || n.in.size() != 1 || !(n.out[0] == rw.type(n.in[0]))) return {};
  DimTable& dims = *rw.graph().dims;
  const Shape& shape = n.out[0].shape;
  const IndexMap dense{0, dense_strides(dims, shape)};
  const auto map = n.op->view(dims, n, rw.type(n.in[0]), dense);
  if (!map || map->offset != Dim(0) || map->stride.size() != shape.size()) return {};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (map->stride[i] != dense.stride[i] && shape[i] != Dim(1)) return {};
  }
  return n.in[0];
}

V concat_of_one(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  return n.op->name == "concat" && n.in.size() == 1 ? V(n.in[0]) : V();
}

// Parts without elements add nothing.
V concat_of_nothing(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (n.op->name != "concat") return {};
  std::vector<Value> kept;
  for (Value v : n.in) {
    const Shape& s = rw.type(v).shape;
    if (std::find(s.begin(), s.end(), Dim(0)) == s.end()) kept.push_back(v);
  }
  if (kept.empty() || kept.size() == n.in.size()) return {};
  const std::vector<Attr> attrs = n.attrs;
  const Loc loc = n.loc;
  return rw.make("concat", std::move(kept), attrs, loc);
}

constexpr Rule kRules[] = {identity_view, concat_of_one, concat_of_nothing};

}  // namespace

std::span<const Rule> movement_identities() { return kRules; }

}  // namespace tern
