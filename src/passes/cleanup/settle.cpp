#include <algorithm>

#include "graph/contents.h"
#include "graph/reference.h"
#include "passes/passes.h"
#include "passes/rewrite/rewrite.h"

namespace tern {
namespace {

// A node that fuses into its readers and needs no memory.
bool is_light(const Node& n) { return n.op->scalar >= 0 || n.op->view != nullptr || n.op->name == "iota"; }

Result<Value> written(Graph& g, const TensorType& type, const Contents& contents, const Loc& loc) {
  if (const auto numbers = constants_of(contents)) {
    RefTensor t = ref_zeros(type.dtype, *constants_of(type.shape));
    t.i = *numbers;
    TERN_TRY(const std::vector<Value> made, g.add(kConstantOp, {}, {const_from(t)}, loc));
    return made[0];
  }
  const bool scalar = type.shape.empty();
  std::vector<Attr> attrs{scalar ? Attr(contents[0]) : Attr(Shape(contents)), type.dtype};
  TERN_TRY(std::vector<Value> made, g.add(*find_op(scalar ? "dim" : "dims"), {}, std::move(attrs), loc));
  if (type.shape.size() > 1) {
    TERN_TRY(made, g.add(*find_op("reshape"), {made[0]}, {type.shape}, loc));
  }
  return made[0];
}

Status settle_one(Graph& g) {
  ContentsOf contents(g);
  for (const uint32_t id : g.order()) {
    const Node& n = g.node(id);
    if (n.op->kind == OpKind::leaf || n.out.size() != 1) continue;
    const bool folds = std::all_of(n.in.begin(), n.in.end(), [&](Value v) { return g.at(v).op == &kConstantOp; });
    if (folds) continue;  // and sizes themselves, which read nothing
    const auto& known = contents.of({id, 0});
    // An index and a number are cheaper than a list of sums.
    if (!known || (known->size() > 1 && is_light(n) && !constants_of(*known))) continue;
    const TensorType type = n.out[0];
    if (type.dtype == DType::boolean && !constants_of(*known)) continue;
    TERN_TRY(const Value made, written(g, type, *known, Loc(n.loc)));
    g.replace({id, 0}, made);
  }
  return ok();
}

}  // namespace

Status settle(Graph& graph, const Target&) { return for_each_graph(graph, settle_one); }

}  // namespace tern
