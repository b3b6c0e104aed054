// Folding of constants and identities, and value numbering. Only rewrites that give the same bits for every input.
#include <bit>
#include <limits>

#include "kir/eval.h"
#include "kir/make/state.h"

namespace tern::kir {

size_t NodeHash::operator()(const Node& n) const {
  uint64_t h = static_cast<uint64_t>(n.op) | static_cast<uint64_t>(n.type) << 8 | static_cast<uint64_t>(n.width) << 16;
  for (uint64_t part : {uint64_t{n.a}, uint64_t{n.b}, uint64_t{n.c}, uint64_t{n.d}, n.imm}) {
    h = (h ^ part) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
  }
  return static_cast<size_t>(h);
}

std::optional<uint64_t> B::State::bits(Ref ref) const {
  if (ref == kNone || k.nodes[ref].op != Op::constant) return std::nullopt;
  return k.nodes[ref].imm;
}

Ref B::State::append(const Node& node) {
  const Ref ref = static_cast<Ref>(k.nodes.size());
  k.nodes.push_back(node);
  k.blocks[open.back()].push_back(ref);
  return ref;
}

Ref B::State::numbered(const Node& node) {
  for (auto scope = numbers.rbegin(); scope != numbers.rend(); ++scope) {
    if (auto it = scope->find(node); it != scope->end()) return it->second;
  }
  const Ref ref = append(node);
  numbers.back().emplace(node, ref);
  return ref;
}

Ref B::State::leaf(const Node& node) {
  auto [it, fresh] = numbers.front().emplace(node, static_cast<Ref>(k.nodes.size()));
  if (fresh) k.nodes.push_back(node);
  return it->second;
}

Ref B::State::pure(Node node) {
  if (auto known = fold(node)) return *known;
  return numbered(node);
}

namespace {

bool commutes(Op op, Type operand) {
  switch (op) {
    case Op::add:
    case Op::mul:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::eq:
    case Op::ne: return true;
    case Op::min:
    case Op::max: return !is_float(operand);  // which NaN comes out depends on the order
    default: return false;
  }
}

uint64_t mask_of(Type t) { return is_wide64(t) ? ~uint64_t{0} : 0xffffffffu; }

}  // namespace

std::optional<Ref> B::State::fold(Node& n) {
  if (n.op == Op::part || n.op == Op::tuple) return std::nullopt;
  const Type operand = k.nodes[n.op == Op::select ? n.b : n.a].type;
  if (commutes(n.op, operand) && bits(n.a) && !bits(n.b)) std::swap(n.a, n.b);
  bool all = true;
  each_operand(n, [&](Ref r) { all = all && bits(r).has_value(); });
  if (all) {
    uint64_t value = 0;
    const uint64_t b = n.b == kNone ? 0 : *bits(n.b), c = n.c == kNone ? 0 : *bits(n.c);
    if (eval(n.op, n.type, operand, *bits(n.a), b, c, &value)) return constant(n.type, value);
    return std::nullopt;
  }
  if (auto known = fold_shape(n)) return known;
  if (operand == b1) return fold_bool(n);
  return is_float(operand) ? fold_float(n) : fold_int(n);
}

// Casts, selects and double negation.
std::optional<Ref> B::State::fold_shape(Node& n) {
  const Node a = k.nodes[n.a];
  switch (n.op) {
    case Op::cast:
      if (a.type == n.type) return n.a;
      return std::nullopt;
    case Op::bitcast:
      if (a.op == Op::bitcast) n.a = a.a;
      if (k.nodes[n.a].type == n.type) return n.a;
      return std::nullopt;
    case Op::neg:
    case Op::logic_not:
      if (a.op == n.op) return a.a;
      return std::nullopt;
    case Op::select: {
      if (n.b == n.c) return n.b;
      if (auto cond = bits(n.a)) return *cond ? n.b : n.c;
      if (n.type == b1 && bits(n.b) == 1u && bits(n.c) == 0u) return n.a;
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

std::optional<Ref> B::State::fold_bool(const Node& n) {
  if (n.op == Op::bit_and || n.op == Op::bit_or) {
    if (n.a == n.b) return n.a;
    if (auto b = bits(n.b)) return (*b != 0) == (n.op == Op::bit_and) ? n.a : n.b;
  }
  return std::nullopt;
}

std::optional<Ref> B::State::fold_float(Node& n) {
  const auto b = n.b == kNone ? std::nullopt : bits(n.b);
  if (!b) return std::nullopt;
  const double value = n.type == f64 ? std::bit_cast<double>(*b) : std::bit_cast<float>(static_cast<uint32_t>(*b));
  switch (n.op) {
    case Op::mul:
      if (value == 1) return n.a;
      break;
    case Op::div: {
      if (value == 1) return n.a;
      // Division by a power of two is a multiplication when the reciprocal is a normal number.
      const double inverse = 1 / value,
                   small = n.type == f64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
      uint64_t mantissa = n.type == f64 ? *b << 12 : *b << 41;
      if (mantissa == 0 && value != 0 && value - value == 0 && (inverse >= small || inverse <= -small) &&
          inverse - inverse == 0) {
        n.op = Op::mul;
        n.b = constant(n.type, n.type == f64 ? std::bit_cast<uint64_t>(inverse)
                                             : std::bit_cast<uint32_t>(static_cast<float>(inverse)));
      }
      break;
    }
    case Op::sub:  // x - (+0) keeps the sign of a zero, x + (+0) does not
      if (*b == 0) return n.a;
      break;
    case Op::add:
      if (value == 0 && *b != 0) return n.a;
      break;
    default: break;
  }
  return std::nullopt;
}

// lane < lanes: what that settles.
std::optional<Ref> B::State::fold_lane(const Node& n, uint64_t b) {
  const uint64_t lanes = k.lanes;
  switch (n.op) {
    case Op::div: return b >= lanes ? std::optional(constant(u32, 0)) : std::nullopt;
    case Op::rem: return b >= lanes ? std::optional(n.a) : std::nullopt;
    case Op::bit_and: return std::has_single_bit(b + 1) && b + 1 >= lanes ? std::optional(n.a) : std::nullopt;
    case Op::shr: return (uint64_t{1} << b) >= lanes ? std::optional(constant(u32, 0)) : std::nullopt;
    case Op::lt: return b >= lanes ? std::optional(constant(b1, 1)) : std::nullopt;
    case Op::le: return b + 1 >= lanes ? std::optional(constant(b1, 1)) : std::nullopt;
    default: return std::nullopt;
  }
}

// (x + c) + y = (x + y) + c and (x + c) * d = x * d + c * d: the addresses of unrolled code differ in a last constant
// only, and share the rest. Wrapping arithmetic makes both exact.
std::optional<Ref> B::State::constants_outward(Node& n) {
  const auto offset = [&](Ref r) { return k.nodes[r].op == Op::add && bits(k.nodes[r].b).has_value(); };
  const auto again = [&](Op op, Ref a, Ref b) { return pure({.op = op, .type = n.type, .a = a, .b = b}); };
  if (n.op == Op::mul) {
    if (!offset(n.a) || !bits(n.b)) return std::nullopt;
    const Node sum = k.nodes[n.a];
    const Ref scaled = again(Op::mul, sum.a, n.b);
    return again(Op::add, scaled, again(Op::mul, sum.b, n.b));
  }
  if (bits(n.b)) return std::nullopt;
  if (offset(n.a)) {
    const Node sum = k.nodes[n.a];
    const Ref rest = again(Op::add, sum.a, n.b);
    return again(Op::add, rest, sum.b);
  }
  if (offset(n.b)) {
    const Node sum = k.nodes[n.b];
    const Ref rest = again(Op::add, n.a, sum.a);
    return again(Op::add, rest, sum.b);
  }
  return std::nullopt;
}

std::optional<Ref> B::State::fold_int(Node& n) {
  const Type t = k.nodes[n.a].type;
  const uint64_t ones = mask_of(t);
  if (n.a == n.b) {
    switch (n.op) {
      case Op::sub:
      case Op::bit_xor: return constant(t, 0);
      case Op::bit_and:
      case Op::bit_or:
      case Op::min:
      case Op::max: return n.a;
      case Op::lt:
      case Op::ne: return constant(b1, 0);
      case Op::le:
      case Op::eq: return constant(b1, 1);
      default: break;
    }
  }
  if (n.op == Op::add || n.op == Op::mul) {
    if (auto known = constants_outward(n)) return known;
  }
  if (n.b == kNone || !bits(n.b)) return std::nullopt;
  const uint64_t b = *bits(n.b);
  const Node a = k.nodes[n.a];
  if (a.op == Op::lane) {
    if (auto known = fold_lane(n, b)) return known;
  }
  // (x op c1) op c2
  if (a.op == n.op && (n.op == Op::add || n.op == Op::mul || n.op == Op::bit_and || n.op == Op::bit_or) && bits(a.b)) {
    uint64_t both = 0;
    eval(n.op, t, t, *bits(a.b), b, 0, &both);
    n.a = a.a;
    n.b = constant(t, both);
    return fold_int(n);
  }
  if (a.op == n.op && (n.op == Op::shl || (n.op == Op::shr && !is_signed(t))) && bits(a.b) &&
      *bits(a.b) + b < (is_wide64(t) ? 64u : 32u)) {
    n.b = constant(u32, *bits(a.b) + b);
    n.a = a.a;
    return fold_int(n);
  }
  switch (n.op) {
    case Op::add:
    case Op::sub:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shl:
    case Op::shr: return b == 0 ? std::optional(n.a) : std::nullopt;
    case Op::mul:
      if (b == 0) return n.b;
      return b == 1 ? std::optional(n.a) : std::nullopt;
    case Op::bit_and:
      if (b == 0) return n.b;
      return b == ones ? std::optional(n.a) : std::nullopt;
    case Op::div:
      if (b == 1) return n.a;
      if (!is_signed(t) && std::has_single_bit(b)) {
        n.op = Op::shr;
        n.b = constant(u32, static_cast<uint64_t>(std::countr_zero(b)));
        return fold_int(n);
      }
      return std::nullopt;
    case Op::rem:
      if (b == 1) return constant(t, 0);
      if (!is_signed(t) && std::has_single_bit(b)) {
        n.op = Op::bit_and;
        n.b = constant(t, b - 1);
        return fold_int(n);
      }
      return std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace tern::kir
