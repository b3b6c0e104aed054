// Identities of elementwise ops that hold bit for bit (of NaNs, that they are NaN).
#include <algorithm>
#include <cmath>

#include "graph/reference.h"
#include "passes/simplify/rules.h"

namespace tern {
namespace {

using V = std::optional<Value>;

bool integral(const Rewriter& rw, Value v) { return !is_float(rw.type(v).dtype) && !is_complex(rw.type(v).dtype); }

// x with a number that does nothing on the right: x + -0, x - 0, x * 1, x / 1, x ^ 1, and the integers' own.
V right_identity(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (n.op->scalar < 0 || n.in.size() != 2) return {};
  const auto c = rw.uniform(n.in[1]);
  if (!c) return {};
  const bool ints = integral(rw, n.in[0]);
  const Value x = n.in[0];
  switch (static_cast<ScalarOp>(n.op->scalar)) {
    case ScalarOp::add: return c->negative_zero() || (ints && c->is(0)) ? V(x) : V();
    case ScalarOp::sub: return c->is(0) ? V(x) : V();
    case ScalarOp::mul:
    case ScalarOp::div: return c->is(1) ? V(x) : ints && c->is(0) && rw.is(n, ScalarOp::mul) ? V(n.in[1]) : V();
    case ScalarOp::pow: return c->is(1) ? V(x) : V();
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor:
    case ScalarOp::shift_left:
    case ScalarOp::shift_right: return c->is(0) ? V(x) : V();
    case ScalarOp::bit_and: return c->i == wrap_to(c->dtype, -1) ? V(x) : c->is(0) ? V(n.in[1]) : V();
    default: return {};
  }
}

// Both operands are one value.
V twice_the_same(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (n.op->scalar < 0 || n.in.size() < 2) return {};
  switch (static_cast<ScalarOp>(n.op->scalar)) {
    case ScalarOp::min:
    case ScalarOp::max:
    case ScalarOp::bit_and:
    case ScalarOp::bit_or: return n.in[0] == n.in[1] ? V(n.in[0]) : V();
    case ScalarOp::select: return n.in[1] == n.in[2] ? V(n.in[1]) : V();
    default: return {};
  }
}

// f(f(x)) is f(x).
V idempotent(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  static constexpr ScalarOp kOnce[] = {ScalarOp::abs,   ScalarOp::relu, ScalarOp::sign,
                                       ScalarOp::floor, ScalarOp::ceil, ScalarOp::round};
  for (ScalarOp op : kOnce) {
    if (rw.is(n, op) && rw.def(n.in[0], op)) return n.in[0];
  }
  // Rounding leaves what is whole.
  static constexpr ScalarOp kWhole[] = {ScalarOp::floor, ScalarOp::ceil, ScalarOp::round};
  const bool rounds = std::any_of(std::begin(kWhole), std::end(kWhole), [&](ScalarOp op) { return rw.is(n, op); });
  if (rounds && std::any_of(std::begin(kWhole), std::end(kWhole), [&](ScalarOp op) { return rw.def(n.in[0], op); }))
    return n.in[0];
  return {};
}

// f(f(x)) is x; signs that cancel.
V involution(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (n.op->scalar < 0 || n.in.empty()) return {};
  for (ScalarOp op : {ScalarOp::neg, ScalarOp::logical_not}) {
    const Node* inner = rw.is(n, op) ? rw.def(n.in[0], op) : nullptr;
    if (inner) return inner->in[0];
  }
  const Loc loc = n.loc;
  // Unsigned numbers have no sign to drop: there neg wraps and abs does nothing.
  if (rw.is(n, ScalarOp::abs) && dtype_info(n.out[0].dtype).kind != DTypeKind::unsigned_int) {
    if (const Node* inner = rw.def(n.in[0], ScalarOp::neg)) return rw.make("abs", {inner->in[0]}, {}, loc);
  }
  // a + (-b) = a - b and a - (-b) = a + b, in every rounding.
  if (rw.is(n, ScalarOp::add)) {
    if (const Node* inner = rw.def(n.in[1], ScalarOp::neg)) return rw.make("sub", {n.in[0], inner->in[0]}, {}, loc);
    if (const Node* inner = rw.def(n.in[0], ScalarOp::neg)) return rw.make("sub", {n.in[1], inner->in[0]}, {}, loc);
  }
  if (rw.is(n, ScalarOp::sub)) {
    if (const Node* inner = rw.def(n.in[1], ScalarOp::neg)) return rw.make("add", {n.in[0], inner->in[0]}, {}, loc);
  }
  return {};
}

V select_constant(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (!rw.is(n, ScalarOp::select)) return {};
  if (const auto c = rw.uniform(n.in[0])) return c->i ? n.in[1] : n.in[2];
  if (const Node* inner = rw.def(n.in[0], ScalarOp::logical_not)) {
    const Loc loc = n.loc;
    return rw.make("select", {inner->in[0], n.in[2], n.in[1]}, {}, loc);
  }
  return {};
}

// Every value of `from` has its equal in `to`.
bool holds_exactly(DType from, DType to) {
  const DTypeInfo &a = dtype_info(from), &b = dtype_info(to);
  if (from == to) return true;
  if (a.kind == DTypeKind::complex || b.kind == DTypeKind::complex) return from == DType::c64 && to == DType::c128;
  if (a.kind == DTypeKind::boolean) return true;
  if (b.kind == DTypeKind::boolean) return false;
  // Floats: more bits and at least the range at both ends; f8e4m3 has no infinity, so nothing wider fails it.
  if (a.kind == DTypeKind::floating) {
    static constexpr DType kChain[][2] = {
        {DType::f8e4m3, DType::f16},  {DType::f8e5m2, DType::f16}, {DType::f8e4m3, DType::bf16},
        {DType::f8e5m2, DType::bf16}, {DType::f16, DType::f32},    {DType::bf16, DType::f32},
        {DType::f32, DType::f64},     {DType::f16, DType::f64},    {DType::bf16, DType::f64},
        {DType::f8e4m3, DType::f32},  {DType::f8e5m2, DType::f32}, {DType::f8e4m3, DType::f64},
        {DType::f8e5m2, DType::f64}};
    return std::any_of(std::begin(kChain), std::end(kChain),
                       [&](const DType* c) { return c[0] == from && c[1] == to; });
  }
  if (b.kind == DTypeKind::floating) return a.mantissa_bits <= b.mantissa_bits + 1 && a.highest <= b.highest;
  return a.lowest >= b.lowest && a.mantissa_bits <= b.mantissa_bits;
}

V casts(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (!rw.is(n, ScalarOp::cast)) return {};
  const DType to = n.out[0].dtype;
  if (rw.type(n.in[0]).dtype == to && !rw.type(n.in[0]).format) return n.in[0];
  const Node* inner = rw.def(n.in[0], ScalarOp::cast);
  if (!inner || rw.type(inner->in[0]).format || !holds_exactly(rw.type(inner->in[0]).dtype, inner->out[0].dtype))
    return {};
  const Value source = inner->in[0];
  // Between integers a cast wraps, from floats it does not: a float in between is no detour.
  if (is_float(inner->out[0].dtype) && !is_float(rw.type(source).dtype) && is_int(to)) return {};
  // The first cast lost nothing, so the second alone gives the same.
  if (rw.type(source).dtype == to) return source;
  const std::vector<Attr> attrs = n.attrs;
  const Loc loc = n.loc;
  return rw.make("cast", {source}, attrs, loc);
}

constexpr Rule kRules[] = {right_identity, twice_the_same, idempotent, involution, select_constant, casts};

}  // namespace

std::span<const Rule> scalar_identities() { return kRules; }

}  // namespace tern
