#include <algorithm>

#include "graph/reference.h"
#include "graph/sizes/contents.h"
#include "passes/passes.h"
#include "passes/rewrite/rewrite.h"

namespace tern {
namespace {

// Of a number and a list of constants; from there on a list of sums is no better.
constexpr size_t kFew = 8;

// A node that fuses into its readers and needs no memory, of more than sizes and constants: an index and a number are
// cheaper than a list of sums.
bool is_light(const Graph& g, const Node& n, size_t count) {
  if (n.op->scalar < 0 && n.op->view == nullptr && n.op->name != "iota") return false;
  bool lists = false, other = false;
  for (const Value v : n.in) {
    const OpDef* op = g.at(v).op;
    lists = lists || op->name == "dims";
    other = other || (op != &kConstantOp && op->name != "dim" && op->name != "dims");
  }
  return other || (count > kFew && !lists);
}

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
    if (!known || (known->size() > 1 && is_light(g, n, known->size()) && !constants_of(*known))) continue;
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
