// reduce, concat and pad take any expression as operand: groups made of it.
#include <algorithm>

#include "base/check.h"
#include "lower/fuse/fuse.h"

namespace tern::lowering {
namespace {

using Ints = std::vector<int64_t>;
using Built = Result<bool>;

IndexMap permuted(const IndexMap& map, const std::vector<size_t>& axes) {
  IndexMap out{map.offset, {}};
  for (const size_t a : axes) out.stride.push_back(map.stride[a]);
  return out;
}

void permute(Expr& expr, const std::vector<size_t>& axes) {
  for (ExprLoad& l : expr.loads) l.map = permuted(l.map, axes);
  for (ScalarExpr::Load& l : expr.code.loads) l.map = permuted(l.map, axes);
  for (ScalarExpr::Ins& i : expr.code.code) {
    if (i.kind == ScalarExpr::Kind::index)
      i.a = static_cast<uint16_t>(std::find(axes.begin(), axes.end(), i.a) - axes.begin());
  }
}

ReduceKind reduce_kind(const std::string& name) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min", "any", "all"};
  return static_cast<ReduceKind>(std::find(std::begin(kNames), std::end(kNames), name) - std::begin(kNames));
}

Built reduce(FuseState& s, uint32_t id, std::vector<Group>& out) {
  const Node& node = s.graph.node(id);
  const Value x = node.in[0];
  Expr expr;
  if (!build_expr(s, x, false, expr)) return false;
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
  Problem& p = group.problem;
  p.family = Family::reduce;
  // A prologue's result is its last instruction.
  if (expr.result + 1u != p.prologue.code.size()) p.prologue.code.push_back(p.prologue.code[expr.result]);
  TensorType type = node.out[0];
  type.shape.assign(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(kept));
  if (axes.empty()) {
    p.extent.push_back(1);
    for (ScalarExpr::Load& l : p.prologue.loads) l.map.stride.push_back(0);
  }
  p.desc =
      ReduceDesc{reduce_kind(attr<std::string>(node, "kind")), static_cast<uint8_t>(std::max<size_t>(1, axes.size()))};
  IndexMap to = dense_map(s.dims, type.shape);
  to.stride.resize(p.extent.size(), 0);
  add_out(s, group, {id, 0}, type, 0, to);
  out.push_back(std::move(group));
  return true;
}

// Each operand is a region that stores into its part of the result.
Built concat(FuseState& s, uint32_t id, std::vector<Group>& out) {
  const Node& node = s.graph.node(id);
  const auto axis = static_cast<size_t>(attr<int64_t>(node, "axis"));
  const IndexMap whole = dense_map(s.dims, node.out[0].shape);
  Dim first = 0;
  for (const Value v : node.in) {
    IndexMap to = whole;
    to.offset = s.dims.mul(first, whole.stride[axis]);
    first = s.dims.add(first, s.graph.type(v).shape[axis]);
    Expr expr;
    if (!build_expr(s, v, false, expr)) return false;
    Group group = region_group(s, expr, s.graph.type(v).shape, id);
    add_out(s, group, {id, 0}, node.out[0], expr.result, std::move(to));
    out.push_back(std::move(group));
  }
  return true;
}

// How far an amount cuts; an error where its sign is unknown.
Result<Dim> cut_of(FuseState& s, uint32_t id, Dim amount, bool interior) {
  const auto [low, high] = s.dims.range(amount);
  if (low >= 0) return Dim(0);
  if (high > 0 || interior) {
    return make_error(Code::unsupported, "pad: an amount of " + s.dims.text(amount) + " may cut; cut with slice first",
                      s.where(id));
  }
  return s.dims.sub(0, amount);
}

// Everything gets the padding value, then what is left of the operand is placed on top.
Built pad(FuseState& s, uint32_t id, std::vector<Group>& out) {
  const Node& node = s.graph.node(id);
  const Value from = node.in[0], value = node.in[1];
  const auto &low = attr<Shape>(node, "low"), &high = attr<Shape>(node, "high");
  const auto& interior = attr<Ints>(node, "interior");
  const IndexMap whole = dense_map(s.dims, node.out[0].shape);
  const size_t rank = low.size();
  Expr fill, expr;
  if (!build_expr(s, value, false, fill) || !build_expr(s, from, false, expr)) return false;
  for (ExprLoad& l : fill.loads) l.map.stride.assign(rank, 0);
  for (ScalarExpr::Load& l : fill.code.loads) l.map.stride.assign(rank, 0);
  Group back = region_group(s, fill, node.out[0].shape, id);
  add_out(s, back, {id, 0}, node.out[0], fill.result, whole);

  IndexMap to = whole;
  Shape extent = s.graph.type(from).shape;
  const bool indexed = std::any_of(expr.code.code.begin(), expr.code.code.end(),
                                   [](const auto& i) { return i.kind == ScalarExpr::Kind::index; });
  for (size_t a = 0; a < rank; ++a) {
    const bool apart = !interior.empty() && interior[a] != 0;
    TERN_TRY(const Dim skip, cut_of(s, id, low[a], apart));
    TERN_TRY(const Dim drop_end, cut_of(s, id, high[a], apart));
    if (indexed && skip != Dim(0)) {  // what counts its own positions is computed before it is cut
      s.stored.mark(from);
      return false;
    }
    extent[a] = s.dims.sub(extent[a], s.dims.add(skip, drop_end));
    for (ScalarExpr::Load& l : expr.code.loads)
      l.map.offset = s.dims.add(l.map.offset, s.dims.mul(skip, l.map.stride[a]));
    if (skip == Dim(0)) to.offset = s.dims.add(to.offset, s.dims.mul(low[a], whole.stride[a]));
    if (apart) to.stride[a] = s.dims.mul(whole.stride[a], interior[a] + 1);
  }
  Group front = region_group(s, expr, extent, id);
  add_out(s, front, {id, 0}, node.out[0], expr.result, std::move(to));
  front.over = true;
  out.push_back(std::move(back));
  out.push_back(std::move(front));
  return true;
}

struct Row {
  std::string_view op;
  Built (*make)(FuseState&, uint32_t, std::vector<Group>&);
};
constexpr Row kRows[] = {{"reduce", reduce}, {"concat", concat}, {"pad", pad}};

const Row* find(std::string_view op) {
  const auto at = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == op; });
  return at == std::end(kRows) ? nullptr : at;
}

}  // namespace

bool is_mover(const Node& node) { return find(node.op->name) != nullptr; }

Result<std::optional<bool>> make_mover(FuseState& s, uint32_t node, std::vector<Group>& out) {
  const Row* row = find(s.graph.node(node).op->name);
  if (row == nullptr) return std::optional<bool>();
  TERN_TRY(const bool good, row->make(s, node, out));
  return std::optional<bool>(good);
}

}  // namespace tern::lowering
