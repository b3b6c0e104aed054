// Groups of elementwise chains: one per stored value that no anchor makes.
#include <algorithm>

#include "base/check.h"
#include "lower/fuse/fuse.h"

namespace tern::lowering {
namespace {

// What to store so that fewer operands are left: the operand of the root whose own tree is deepest comes last in the
// order of construction, so the last one without memory is taken.
std::optional<Value> largest_operand(const FuseState& s, Value root) {
  std::optional<Value> pick;
  for (const Value v : s.graph.node(root.node).in) {
    if (!s.stored(v) && (s.is_elementwise(v.node) || s.is_view(v.node)) && !s.graph.type(v).shape.empty()) pick = v;
  }
  return pick;
}

bool elementwise(FuseState& s, Value root, std::vector<Group>& out) {
  Expr expr;
  if (!build_expr(s, root, true, expr)) return false;
  const TensorType& type = s.graph.type(root);
  Group group = region_group(s, expr, type.shape, root.node);
  add_out(s, group, root, type, expr.result, dense_map(s.dims, type.shape));
  if (group.problem.extent.empty()) {
    group.problem.extent = {1};
    for (ScalarExpr::Load& l : group.problem.prologue.loads) l.map.stride = {0};
    group.problem.parts[0].outs[0].map.stride = {1};
  }
  out.push_back(std::move(group));
  return true;
}

// Everything that has to be stored is found before any group is kept, so that all of them read it.
bool make_all(FuseState& s, std::vector<Group>& out, Status& status) {
  bool again = false;
  for (const uint32_t id : s.order) {
    auto mover = make_mover(s, id, out);
    if (!mover) {
      status = mover.take_error();
      return false;
    }
    bool good = true;
    if (*mover) {
      good = **mover;
    } else if (!s.is_leaf(id) && !s.is_anchor(id) && s.stored({id, 0})) {
      good = elementwise(s, {id, 0}, out);
    }
    again = again || !good;
  }
  return again;
}

}  // namespace

bool build_expr(FuseState& s, Value root, bool expand, Expr& expr) {
  ExprBuilder builder(s.graph, s.stored, s.graph.type(root).shape);
  std::optional<Value> must_store;
  if (!builder.build(root, expand, expr, must_store)) {
    TERN_CHECK(must_store && !s.stored(*must_store), "a view refuses a dense value");
    s.stored.mark(*must_store);
    return false;
  }
  std::vector<Value> distinct;
  for (const ExprLoad& l : expr.loads) {
    if (std::find(distinct.begin(), distinct.end(), l.value) == distinct.end()) distinct.push_back(l.value);
  }
  if (distinct.size() + 1 <= s.caps.max_bindings) return true;
  const auto more = largest_operand(s, root);
  if (!more) return true;  // a candidate may still bind several values as one
  s.stored.mark(*more);
  return false;
}

Operand operand_of(const FuseState& s, Value v, TensorType type, Role role, Access access) {
  return {std::move(type), role, origin_of(s.graph, v), access, {}};
}

uint16_t read_operand(Group& group, Value v, const Operand& operand) {
  for (size_t i = 0; i < group.values.size(); ++i) {
    const Operand& o = group.problem.operands[i];
    if (group.values[i] == v && o.access == Access::read && o.role == operand.role && o.type == operand.type)
      return static_cast<uint16_t>(i);
  }
  group.problem.operands.push_back(operand);
  group.values.push_back(v);
  return static_cast<uint16_t>(group.values.size() - 1);
}

void add_loads(FuseState& s, const Expr& expr, ScalarExpr& code, Group& group, Role role) {
  code = expr.code;
  for (ScalarExpr::Load& l : code.loads) {
    const Value v = expr.loads[l.operand].value;
    l.operand = read_operand(group, v, operand_of(s, v, s.graph.type(v), role, Access::read));
  }
}

Group region_group(FuseState& s, const Expr& expr, const Shape& extent, uint32_t node) {
  Group group;
  group.label = label_of(s.graph, node);
  group.device = s.device[node];
  group.problem.family = Family::region;
  group.problem.desc = RegionDesc{};
  group.problem.extent = extent;
  group.problem.parts.resize(1);
  add_loads(s, expr, group.problem.prologue, group, Role::x);
  return group;
}

void add_out(FuseState& s, Group& group, Value v, TensorType type, uint16_t result, IndexMap map) {
  Output out;
  out.operand = static_cast<uint16_t>(group.values.size());
  out.result = result;
  out.map = std::move(map);
  group.problem.operands.push_back(operand_of(s, v, std::move(type), Role::out, Access::write));
  group.values.push_back(v);
  group.problem.parts[0].outs.push_back(out);
}

Status make_regions(FuseState& s) {
  std::vector<Group> out;
  Status status = ok();
  while (make_all(s, out, status)) out.clear();
  for (Group& g : out) s.groups.push_back(std::move(g));
  return status;
}

void drop(FuseState& s, const std::vector<bool>& gone) {
  std::vector<Group> kept;
  for (size_t g = 0; g < s.groups.size(); ++g) {
    if (!gone[g]) kept.push_back(std::move(s.groups[g]));
  }
  s.groups = std::move(kept);
}

}  // namespace tern::lowering
