// One spelling for elementwise ops.
#include <cmath>

#include "graph/reference.h"
#include "passes/canonical/rules.h"

namespace tern {
namespace {

using V = std::optional<Value>;

// The op that gives the same with its operands exchanged, bit for bit.
std::string_view exchanged(const OpDef& op) {
  if (op.scalar < 0) return {};
  switch (static_cast<ScalarOp>(op.scalar)) {
    case ScalarOp::add:
    case ScalarOp::mul:
    case ScalarOp::eq:
    case ScalarOp::ne:
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor: return op.name;
    case ScalarOp::lt: return "gt";
    case ScalarOp::le: return "ge";
    case ScalarOp::gt: return "lt";
    case ScalarOp::ge: return "le";
    default: return {};
  }
}

V constants_to_the_right(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  const std::string_view other = exchanged(*n.op);
  if (other.empty() || n.in.size() != 2 || !rw.constant(n.in[0]) || rw.constant(n.in[1])) return {};
  const Loc loc = n.loc;
  return rw.make(other, {n.in[1], n.in[0]}, {}, loc);
}

// x / 2^k is x * 2^-k where the reciprocal is a normal number: both are exact scalings.
V division_by_a_power_of_two(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (!rw.is(n, ScalarOp::div) || !is_float(n.out[0].dtype)) return {};
  const auto u = rw.uniform(n.in[1]);
  if (!u || u->f == 0 || !std::isfinite(u->f)) return {};
  // Away from the ends of the type's exponents, where the number or its reciprocal would be subnormal.
  int exponent;
  const bool power = std::fabs(std::frexp(u->f, &exponent)) == 0.5;
  if (!power || std::abs(exponent - 1) > std::ilogb(dtype_info(u->dtype).highest) - 2) return {};
  const Node* spread = rw.def(n.in[1], "broadcast");
  const Node& source = rw.graph().at(spread ? spread->in[0] : n.in[1]);
  if (source.op != &kConstantOp) return {};
  auto t = ref_from(std::get<Const>(source.attrs[0]));
  if (!t) return {};
  for (double& v : t->f) v = 1 / v;
  const Loc loc = n.loc;
  const Value x = n.in[0];
  const std::vector<Attr> attrs = spread ? spread->attrs : std::vector<Attr>{};
  auto reciprocal = rw.make("constant", {}, {const_from(*t)}, loc);
  if (reciprocal && spread) reciprocal = rw.make("broadcast", {*reciprocal}, attrs, loc);
  return reciprocal ? rw.make("mul", {x, *reciprocal}, {}, loc) : V();
}

// A repeated scalar is a scalar operand where another operand gives the shape.
V scalar_operands(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (n.op->scalar < 0 || n.in.size() < 2) return {};
  std::vector<Value> in;
  bool changed = false, shaped = false;
  for (Value v : n.in) {
    const Node* b = rw.def(v, "broadcast");
    const bool scalar = b && rw.type(b->in[0]).shape.empty();
    in.push_back(scalar ? b->in[0] : v);
    changed |= scalar;
    shaped |= !rw.type(in.back()).shape.empty();
  }
  if (!changed || !shaped) return {};
  const std::vector<Attr> attrs = n.attrs;
  const Loc loc = n.loc;
  return rw.make(n.op->name, std::move(in), attrs, loc);
}

// Work is done before it is repeated: f(broadcast(a), broadcast(b), c) = broadcast(f(a, b, c)) where c is a scalar and
// the others are repeated alike.
V work_before_broadcast(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (n.op->scalar < 0) return {};
  const Node* spread = nullptr;
  std::vector<Value> sources;
  for (Value v : n.in) {
    if (rw.type(v).shape.empty()) {
      sources.push_back(v);
      continue;
    }
    const Node* b = rw.def(v, "broadcast");
    if (!b) return {};
    if (spread && (spread->attrs != b->attrs || rw.type(spread->in[0]).shape != rw.type(b->in[0]).shape)) return {};
    spread = b;
    sources.push_back(b->in[0]);
  }
  if (!spread || rw.type(spread->in[0]).shape == n.out[0].shape) return {};  // repeats nothing
  const std::vector<Attr> shape = spread->attrs, attrs = n.attrs;
  const Loc loc = n.loc;
  const auto once = rw.make(n.op->name, std::move(sources), attrs, loc);
  return once ? rw.make("broadcast", {*once}, shape, loc) : V();
}

constexpr Rule kRules[] = {constants_to_the_right, division_by_a_power_of_two, scalar_operands, work_before_broadcast};

}  // namespace

std::span<const Rule> scalar_forms() { return kRules; }

}  // namespace tern
