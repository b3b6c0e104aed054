// Groups of elementwise chains: one per stored value, plus reduce, concat and pad, which take any expression as operand.
#include <algorithm>

#include "base/check.h"
#include "lower/fuse.h"

namespace tern::lowering {
namespace {

using Ints = std::vector<int64_t>;

IndexMap permuted(const IndexMap& map, const std::vector<size_t>& axes) {
  IndexMap out{map.offset, {}};
  for (const size_t a : axes) out.stride.push_back(map.stride[a]);
  return out;
}

void permute(Expr& expr, const std::vector<size_t>& axes) {
  for (ExprLoad& l : expr.loads) l.map = permuted(l.map, axes);
  for (ScalarExpr::Load& l : expr.code.loads) l.map = permuted(l.map, axes);
  for (ScalarExpr::Ins& i : expr.code.code) {
    if (i.kind == ScalarExpr::Kind::index) i.a = static_cast<uint16_t>(std::find(axes.begin(), axes.end(), i.a) - axes.begin());
  }
}

// Neighbouring axes that every map walks as one become one; kernels like few, long axes.
void collapse_axes(FuseState& s, Group& group) {
  Problem& p = group.problem;
  std::vector<IndexMap*> maps;
  for (ScalarExpr::Load& l : p.prologue.loads) maps.push_back(&l.map);
  for (Output& o : p.parts[0].outs) {
    if (o.map.stride.empty()) o.map = dense_map(s.dims, p.extent);
    maps.push_back(&o.map);
  }
  const size_t last_kept = p.family == Family::reduce ? std::get<ReduceDesc>(p.desc).reduced_axes : 0;
  for (size_t axis = p.extent.size(); axis-- > 1;) {
    const size_t a = axis - 1;
    // Kept and reduced axes stay apart.
    if (last_kept > 0 && a + 1 == p.extent.size() - last_kept) continue;
    const bool indexed = std::any_of(p.prologue.code.begin(), p.prologue.code.end(), [&](const ScalarExpr::Ins& i) {
      return i.kind == ScalarExpr::Kind::index && (i.a == a || i.a == a + 1);
    });
    if (indexed) continue;
    const bool one_outer = p.extent[a] == Dim(1), one_inner = p.extent[a + 1] == Dim(1);
    const bool joins = std::all_of(maps.begin(), maps.end(), [&](const IndexMap* m) {
      if (m->stride.size() <= a + 1) return false;
      return one_outer || one_inner || s.dims.equal(m->stride[a], s.dims.mul(m->stride[a + 1], p.extent[a + 1])).value_or(false);
    });
    if (!joins) continue;
    for (IndexMap* m : maps) m->stride.erase(m->stride.begin() + static_cast<std::ptrdiff_t>(one_inner && !one_outer ? a + 1 : a));
    p.extent[a] = s.dims.mul(p.extent[a], p.extent[a + 1]);
    p.extent.erase(p.extent.begin() + static_cast<std::ptrdiff_t>(a) + 1);
    if (p.family == Family::reduce && a + 1 > p.extent.size() - std::get<ReduceDesc>(p.desc).reduced_axes) std::get<ReduceDesc>(p.desc).reduced_axes--;
    for (ScalarExpr::Ins& i : p.prologue.code) {
      if (i.kind == ScalarExpr::Kind::index && i.a > a) --i.a;
    }
  }
}

// Builds the expression; stores what cannot be inlined and says so.
enum class Built { yes, again };
Built build(FuseState& s, Value root, Expr& expr) {
  ExprBuilder builder(s.graph, s.stored, s.graph.type(root).shape);
  std::optional<Value> must_store;
  if (!builder.build(root, expr, must_store)) {
    TERN_CHECK(must_store && !s.stored(*must_store), "a view refuses a dense value");
    s.stored.mark(*must_store);
    return Built::again;
  }
  std::vector<Value> distinct;
  for (const ExprLoad& l : expr.loads) {
    if (std::find(distinct.begin(), distinct.end(), l.value) == distinct.end()) distinct.push_back(l.value);
  }
  if (distinct.size() + 1 <= s.caps.max_bindings) return Built::yes;
  // Too many operands for one launch: the largest inlined operand gets memory of its own.
  for (const Value v : s.graph.node(root.node).in) {
    if (!s.stored(v) && (s.is_elementwise(v.node) || s.is_view(v.node)) && s.graph.type(v).shape.size() > 0) {
      s.stored.mark(v);
      return Built::again;
    }
  }
  return Built::yes;
}

Group region_group(FuseState& s, const Expr& expr, const Shape& extent, uint32_t node) {
  Group group;
  group.label = label_of(s.graph, node);
  group.problem.family = Family::region;
  group.problem.desc = RegionDesc{};
  group.problem.extent = extent;
  group.problem.parts.resize(1);
  add_loads(s, expr, group.problem.prologue, group, Role::x);
  return group;
}

void add_out(FuseState& s, Group& group, Value v, TensorType type, uint16_t result, IndexMap map = {}) {
  Output out;
  out.operand = static_cast<uint16_t>(group.values.size());
  out.result = result;
  out.map = std::move(map);
  group.problem.operands.push_back(operand_of(s, v, std::move(type), Role::out, Access::write));
  group.values.push_back(v);
  group.problem.parts[0].outs.push_back(out);
}

Built elementwise(FuseState& s, Value root, std::vector<Group>& out) {
  Expr expr;
  if (build(s, root, expr) == Built::again) return Built::again;
  const TensorType& type = s.graph.type(root);
  Group group = region_group(s, expr, type.shape, root.node);
  add_out(s, group, root, type, expr.result, dense_map(s.dims, type.shape));
  if (group.problem.extent.empty()) {
    group.problem.extent = {1};
    for (ScalarExpr::Load& l : group.problem.prologue.loads) l.map.stride = {0};
    group.problem.parts[0].outs[0].map.stride = {1};
  }
  out.push_back(std::move(group));
  return Built::yes;
}

ReduceKind reduce_kind(const std::string& name) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min", "any", "all"};
  return static_cast<ReduceKind>(std::find(std::begin(kNames), std::end(kNames), name) - std::begin(kNames));
}

Built reduce(FuseState& s, uint32_t id, std::vector<Group>& out) {
  const Node& node = s.graph.node(id);
  const Value x = node.in[0];
  Expr expr;
  if (s.stored(x)) {
    // A plain load of the stored operand.
    const TensorType& type = s.graph.type(x);
    expr.loads.push_back({x, dense_map(s.dims, type.shape)});
    expr.code.loads.push_back({0, expr.loads[0].map});
    expr.code.code.push_back({ScalarExpr::Kind::load, ScalarOp::add, type.dtype, 0, 0, 0});
  } else if (build(s, x, expr) == Built::again) {
    return Built::again;
  }
  const Shape& shape = s.graph.type(x).shape;
  const auto& axes = attr<Ints>(node, "axes");
  std::vector<size_t> order;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) == axes.end()) order.push_back(a);
  }
  const size_t kept = order.size();
  for (const int64_t a : axes) order.push_back(static_cast<size_t>(a));
  permute(expr, order);
  Shape extent;
  for (const size_t a : order) extent.push_back(shape[a]);
  Group group = region_group(s, expr, extent, id);
  group.problem.family = Family::reduce;
  // The prologue's result is the last instruction by rule.
  if (expr.result + 1u != group.problem.prologue.code.size()) {
    group.problem.prologue.code.push_back(group.problem.prologue.code[expr.result]);
  }
  TensorType type = node.out[0];
  type.shape.assign(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(kept));
  if (axes.empty()) {
    group.problem.extent.push_back(1);
    for (ScalarExpr::Load& l : group.problem.prologue.loads) l.map.stride.push_back(0);
  }
  group.problem.desc = ReduceDesc{reduce_kind(attr<std::string>(node, "kind")), static_cast<uint8_t>(std::max<size_t>(1, axes.size()))};
  IndexMap to = dense_map(s.dims, type.shape);
  to.stride.resize(group.problem.extent.size(), 0);
  add_out(s, group, {id, 0}, type, 0, to);
  out.push_back(std::move(group));
  return Built::yes;
}

// Each operand is a region that stores into its part of the result.
Built place(FuseState& s, uint32_t id, Value from, IndexMap to, std::vector<Group>& out) {
  Expr expr;
  if (s.stored(from)) {
    const TensorType& type = s.graph.type(from);
    expr.loads.push_back({from, dense_map(s.dims, type.shape)});
    expr.code.loads.push_back({0, expr.loads[0].map});
    expr.code.code.push_back({ScalarExpr::Kind::load, ScalarOp::add, type.dtype, 0, 0, 0});
  } else if (build(s, from, expr) == Built::again) {
    return Built::again;
  }
  Group group = region_group(s, expr, s.graph.type(from).shape, id);
  add_out(s, group, {id, 0}, s.graph.node(id).out[0], expr.result, std::move(to));
  out.push_back(std::move(group));
  return Built::yes;
}

Built concat(FuseState& s, uint32_t id, std::vector<Group>& out) {
  const Node& node = s.graph.node(id);
  const auto axis = static_cast<size_t>(attr<int64_t>(node, "axis"));
  const IndexMap whole = dense_map(s.dims, node.out[0].shape);
  Dim first = 0;
  for (const Value v : node.in) {
    IndexMap to = whole;
    to.offset = s.dims.mul(first, whole.stride[axis]);
    if (place(s, id, v, std::move(to), out) == Built::again) return Built::again;
    first = s.dims.add(first, s.graph.type(v).shape[axis]);
  }
  return Built::yes;
}

Result<Built> pad(FuseState& s, uint32_t id, std::vector<Group>& out) {
  const Node& node = s.graph.node(id);
  const auto &low = attr<Shape>(node, "low"), &high = attr<Shape>(node, "high");
  const auto& interior = attr<Ints>(node, "interior");
  for (size_t a = 0; a < low.size(); ++a) {
    if (s.dims.range(low[a]).first < 0 || s.dims.range(high[a]).first < 0) {
      return make_error(Code::unsupported, "pad: negative amounts cut; use slice", node.loc.text);
    }
  }
  // Everything gets the padding value, then the operand is placed on top.
  Expr fill;
  const Value value = node.in[1];
  ExprBuilder builder(s.graph, s.stored, node.out[0].shape);
  std::optional<Value> must_store;
  if (!builder.build(value, fill, must_store)) return make_error(Code::internal, "pad: the value is no scalar", node.loc.text);
  if (s.stored(value)) {
    fill = {};
    fill.loads.push_back({value, IndexMap{0, std::vector<Dim>(node.out[0].shape.size(), 0)}});
    fill.code.loads.push_back({0, fill.loads[0].map});
    fill.code.code.push_back({ScalarExpr::Kind::load, ScalarOp::add, node.out[0].dtype, 0, 0, 0});
  }
  Group group = region_group(s, fill, node.out[0].shape, id);
  add_out(s, group, {id, 0}, node.out[0], fill.result, dense_map(s.dims, node.out[0].shape));
  out.push_back(std::move(group));
  const IndexMap whole = dense_map(s.dims, node.out[0].shape);
  IndexMap to = whole;
  for (size_t a = 0; a < low.size(); ++a) {
    to.offset = s.dims.add(to.offset, s.dims.mul(low[a], whole.stride[a]));
    if (!interior.empty()) to.stride[a] = s.dims.mul(whole.stride[a], interior[a] + 1);
  }
  return place(s, id, node.in[0], std::move(to), out);
}

}  // namespace

void collapse(FuseState& s) {
  for (Group& g : s.groups) {
    if (g.problem.family == Family::region || g.problem.family == Family::reduce) collapse_axes(s, g);
  }
}

Status make_regions(FuseState& s) {
  std::vector<Group> out;
  for (bool again = true; again;) {
    again = false;
    out.clear();
    for (const uint32_t id : s.order) {
      const std::string_view op = s.graph.node(id).op->name;
      Built built = Built::yes;
      if (op == "reduce") built = reduce(s, id, out);
      else if (op == "concat") built = concat(s, id, out);
      else if (op == "pad") {
        TERN_TRY(built, pad(s, id, out));
      } else if (!s.is_leaf(id) && !s.is_anchor(id) && s.stored({id, 0})) built = elementwise(s, {id, 0}, out);
      else if (is_scalar_constant(s.graph.node(id)) && s.stored({id, 0})) built = elementwise(s, {id, 0}, out);
      if (built == Built::again) {
        again = true;
        break;
      }
    }
  }
  for (Group& g : out) s.groups.push_back(std::move(g));
  return ok();
}

}  // namespace tern::lowering
