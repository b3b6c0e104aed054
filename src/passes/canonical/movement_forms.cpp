// Chains of views become one view.
#include "passes/canonical/rules.h"

namespace tern {
namespace {

using V = std::optional<Value>;
using Ints = std::vector<int64_t>;

// The operand's node where both are this op.
const Node* chain(Rewriter& rw, const Node& n, std::string_view op) {
  return n.op->name == op ? rw.def(n.in[0], op) : nullptr;
}

// {list[pick[0]], list[pick[1]], ...}
Ints picked(const Ints& list, const Ints& pick) {
  Ints out;
  for (int64_t i : pick) out.push_back(list[static_cast<size_t>(i)]);
  return out;
}

V transposes(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  const Node* inner = chain(rw, n, "transpose");
  if (!inner) return {};
  const Loc loc = n.loc;
  return rw.make("transpose", {inner->in[0]}, {picked(std::get<Ints>(inner->attrs[0]), std::get<Ints>(n.attrs[0]))},
                 loc);
}

V reshapes(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  const Node* inner = chain(rw, n, "reshape");
  if (!inner) return {};
  if (n.out[0] == rw.type(inner->in[0])) return inner->in[0];
  const std::vector<Attr> attrs = n.attrs;
  const Loc loc = n.loc;
  return rw.make("reshape", {inner->in[0]}, attrs, loc);
}

V broadcasts(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  const Node* inner = chain(rw, n, "broadcast");
  if (!inner) return {};
  const Loc loc = n.loc;
  const Attr shape = n.attrs[0];
  return rw.make("broadcast", {inner->in[0]},
                 {shape, picked(std::get<Ints>(n.attrs[1]), std::get<Ints>(inner->attrs[1]))}, loc);
}

// Only where the inner one steps by 1: then its limit is the limit of what is read.
V slices(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  const Node* inner = chain(rw, n, "slice");
  if (!inner) return {};
  for (int64_t step : std::get<Ints>(inner->attrs[2])) {
    if (step != 1) return {};
  }
  DimTable& dims = *rw.graph().dims;
  Shape start, limit;
  const auto& offset = std::get<Shape>(inner->attrs[0]);
  for (size_t i = 0; i < offset.size(); ++i) {
    start.push_back(dims.add(offset[i], std::get<Shape>(n.attrs[0])[i]));
    limit.push_back(dims.add(offset[i], std::get<Shape>(n.attrs[1])[i]));
  }
  const Attr step = n.attrs[2];
  const Loc loc = n.loc;
  return rw.make("slice", {inner->in[0]}, {std::move(start), std::move(limit), step}, loc);
}

// However one looks at a repeated scalar, it is a repeated scalar.
V view_of_scalar(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (!n.op->view || n.in.size() != 1) return {};
  const Node* inner = rw.def(n.in[0], "broadcast");
  if (!inner || n.op->name == "broadcast" || !rw.type(inner->in[0]).shape.empty()) return {};
  const Loc loc = n.loc;
  const Shape shape = n.out[0].shape;
  return rw.make("broadcast", {inner->in[0]}, {shape, Ints{}}, loc);
}

constexpr Rule kRules[] = {transposes, reshapes, broadcasts, slices, view_of_scalar};

}  // namespace

std::span<const Rule> movement_forms() { return kRules; }

}  // namespace tern
