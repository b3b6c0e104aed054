// Pure ops.
#include <bit>
#include <cmath>

#include "emit/spirv/writer.h"

namespace tern::emit {

using namespace spv;
using kir::is_float;
using kir::type_bytes;

namespace {

// How an op of two numbers is written for unsigned, signed and real ones.
struct Row {
  kir::Op op;
  spv::Op plus, minus, real;
};
constexpr Row kRows[] = {
    {kir::Op::add, OpIAdd, OpIAdd, OpFAdd},
    {kir::Op::sub, OpISub, OpISub, OpFSub},
    {kir::Op::mul, OpIMul, OpIMul, OpFMul},
    {kir::Op::div, OpUDiv, OpSDiv, OpFDiv},
    {kir::Op::rem, OpUMod, 0, 0},
    {kir::Op::bit_and, OpBitwiseAnd, OpBitwiseAnd, 0},
    {kir::Op::bit_or, OpBitwiseOr, OpBitwiseOr, 0},
    {kir::Op::bit_xor, OpBitwiseXor, OpBitwiseXor, 0},
    {kir::Op::shl, OpShiftLeftLogical, OpShiftLeftLogical, 0},
    {kir::Op::shr, OpShiftRightLogical, OpShiftRightArithmetic, 0},
    {kir::Op::lt, OpULessThan, OpSLessThan, OpFOrdLessThan},
    {kir::Op::le, OpULessThanEqual, OpSLessThanEqual, OpFOrdLessThanEqual},
    {kir::Op::eq, OpIEqual, OpIEqual, OpFOrdEqual},
    {kir::Op::ne, OpINotEqual, OpINotEqual, OpFUnordNotEqual},
    {kir::Op::min, OpULessThan, OpSLessThan, OpFOrdLessThan},           // where a is taken
    {kir::Op::max, OpUGreaterThan, OpSGreaterThan, OpFOrdGreaterThan},  // where a is taken
};

uint64_t bits_of(kir::Type real, double v) {
  return real == kir::f64 ? std::bit_cast<uint64_t>(v) : std::bit_cast<uint32_t>(static_cast<float>(v));
}

}  // namespace

SpirvWriter::Id SpirvWriter::extended(Extended op, Id type, SpirvModule::Words operands) {
  operands.insert(operands.begin(), {m_.extended_instructions(), op});
  return m_.result(OpExtInst, type, operands);
}

// Neither fused with another nor done in another order.
SpirvWriter::Id SpirvWriter::exact(spv::Op op, Id type, const SpirvModule::Words& operands) {
  const Id id = m_.result(op, type, operands);
  m_.decorate(id, NoContraction);
  return id;
}

SpirvWriter::Id SpirvWriter::pure(Ref r) {
  const Node& n = at(r);
  switch (n.op) {
    case Op::neg:
    case Op::abs:
    case Op::logic_not:
    case Op::floor:
    case Op::round:
    case Op::sqrt:
    case Op::cast:
    case Op::bitcast:
    case Op::half_to_f32:
    case Op::f32_to_half: return unary(n);
    case Op::part: return m_.result(OpCompositeExtract, type(n.type), {value(n.a), static_cast<uint32_t>(n.imm)});
    case Op::tuple: {
      SpirvModule::Words parts;
      kir::each_operand(n, [&](Ref o) { parts.push_back(value(o)); });
      return m_.result(OpCompositeConstruct, vector(type(n.type), n.width), parts);
    }
    case Op::select: return select(type(n.type), value(n.a), value(n.b), value(n.c));
    case Op::fma: return extended(Fma, type(n.type), {value(n.a), value(n.b), value(n.c)});
    case Op::dot4: return dot4(n);
    case Op::lookup: refuse(r, "has no word for this"); return 0;
    default: break;
  }
  if (of(n.a) == kir::b1) return logic(n);
  if (n.op == Op::rem && is_float(n.type)) refuse(r, "has no word for this");
  return binary(n);
}

SpirvWriter::Id SpirvWriter::unary(const Node& n) {
  const Id t = type(n.type), a = value(n.a);
  const Type from = of(n.a);
  switch (n.op) {
    case Op::neg: return is_float(n.type) ? exact(OpFNegate, t, {a}) : m_.result(OpSNegate, t, {a});
    case Op::abs: {
      if (is_float(n.type)) return extended(FAbs, t, {a});
      if (!kir::is_signed(n.type)) return a;
      return select(t, truth(OpSLessThan, a, number(n.type, 0)), m_.result(OpSNegate, t, {a}), a);
    }
    case Op::logic_not: return m_.result(OpLogicalNot, t, {a});
    case Op::floor: return extended(Floor, t, {a});
    case Op::round: return extended(RoundEven, t, {a});
    case Op::sqrt: return extended(Sqrt, t, {a});
    case Op::half_to_f32: return half_to_f32(a);
    case Op::f32_to_half: return f32_to_half(a);
    case Op::bitcast: return type(from) == t ? a : m_.result(OpBitcast, t, {a});
    default: return cast(n.type, from, a);
  }
}

SpirvWriter::Id SpirvWriter::binary(const Node& n) {
  const Type of_a = of(n.a);
  const Id a = value(n.a), b = value(n.b), t = type(n.type);
  // Vulkan leaves OpSRem open where an operand is negative.
  if (n.op == Op::rem && kir::is_signed(n.type))
    return m_.result(OpISub, t, {a, m_.result(OpIMul, t, {m_.result(OpSDiv, t, {a, b}), b})});
  for (const Row& row : kRows) {
    if (row.op != n.op) continue;
    const spv::Op op = is_float(of_a) ? row.real : kir::is_signed(of_a) ? row.minus : row.plus;
    if (n.op == Op::min || n.op == Op::max) return select(t, truth(op, a, b), a, b);
    return is_float(n.type) ? exact(op, t, {a, b}) : m_.result(op, t, {a, b});
  }
  return 0;
}

SpirvWriter::Id SpirvWriter::logic(const Node& n) {
  const spv::Op op = n.op == Op::bit_and  ? OpLogicalAnd
                     : n.op == Op::bit_or ? OpLogicalOr
                     : n.op == Op::eq     ? OpLogicalEqual
                                          : OpLogicalNotEqual;
  return truth(op, value(n.a), value(n.b));
}

SpirvWriter::Id SpirvWriter::cast(Type to, Type from, Id a) {
  const Id t = type(to);
  if (from == kir::b1) return select(t, a, number(to, is_float(to) ? bits_of(to, 1) : 1), number(to, 0));
  if (is_float(from)) {
    if (!is_float(to)) return saturate(to, from, a);
    return from == to ? a : m_.result(OpFConvert, t, {a});
  }
  if (from == kir::u32 && to == kir::f32) return u32_to_f32(a);
  if (is_float(to)) return m_.result(kir::is_signed(from) ? OpConvertSToF : OpConvertUToF, t, {a});
  if (type(from) == t) return a;
  return m_.result(kir::is_signed(from) ? OpSConvert : OpUConvert, t, {a});
}

// In halves, so that one sum rounds: some drivers round twice.
SpirvWriter::Id SpirvWriter::u32_to_f32(Id a) {
  const Id t = real(32), high = m_.result(OpConvertSToF, t, {words_by(OpShiftRightLogical, a, 16)}),
           low = m_.result(OpConvertSToF, t, {words_by(OpBitwiseAnd, a, 0xffff)});
  return exact(OpFAdd, t, {exact(OpFMul, t, {high, number(kir::f32, bits_of(kir::f32, 65536))}), low});
}

// Toward zero; what lies outside becomes the nearest, NaN 0.
SpirvWriter::Id SpirvWriter::saturate(Type to, Type from, Id a) {
  const uint32_t bits = type_bytes(to) * 8;
  const bool minus = kir::is_signed(to);
  const double top = std::ldexp(1.0, static_cast<int>(bits) - (minus ? 1 : 0));
  const uint64_t all = ~uint64_t{0} >> (64 - bits), most = minus ? all >> 1 : all, least = minus ? most + 1 : 0;
  const Id t = type(to), high = number(from, bits_of(from, top)), low = number(from, bits_of(from, minus ? -top : 0));
  const Id above = truth(OpFOrdGreaterThanEqual, a, high), below = truth(OpFOrdLessThan, a, low);
  const Id inside = truth(OpLogicalAnd, truth(OpFOrdGreaterThanEqual, a, low), truth(OpFOrdLessThan, a, high));
  const Id safe = select(type(from), inside, a, number(from, 0));
  const Id cut = m_.result(minus ? OpConvertFToS : OpConvertFToU, t, {safe});
  return select(t, above, number(to, most), select(t, below, number(to, least), cut));
}

SpirvWriter::Id SpirvWriter::half_to_f32(Id bits) {
  const Id both = extended(UnpackHalf2x16, vector(real(32), 2), {bits});
  return m_.result(OpCompositeExtract, real(32), {both, 0});
}

// To nearest even, which drivers need not do when they pack. Below 2^-14 a half counts 2^-24s: adding 0.5, whose last
// bit is worth that, rounds.
SpirvWriter::Id SpirvWriter::f32_to_half(Id v) {
  constexpr uint32_t kSmallestNormal = 0x38800000, kInfinity = 0x7f800000, kHalf = 0x3f000000, kRebias = 112u << 23;
  const Id bits = m_.result(OpBitcast, word(), {v});
  const Id sign = words_by(OpBitwiseAnd, words_by(OpShiftRightLogical, bits, 16), 0x8000);
  const Id size = words_by(OpBitwiseAnd, bits, 0x7fffffff);
  const Id even = words_by(OpBitwiseAnd, words_by(OpShiftRightLogical, size, 13), 1);
  const Id rounded = words(OpIAdd, words_by(OpIAdd, size, 0xfff - kRebias), even);
  const Id normal = words_by(OpShiftRightLogical, rounded, 13);
  const Id cut = select(word(), truth(OpULessThan, normal, word(0x7c00)), normal, word(0x7c00));
  const Id real_size = m_.result(OpBitcast, real(32), {size});
  const Id sum = exact(OpFAdd, real(32), {real_size, number(kir::f32, kHalf)});
  const Id small = words_by(OpISub, m_.result(OpBitcast, word(), {sum}), kHalf);
  const Id finite = select(word(), truth(OpULessThan, size, word(kSmallestNormal)), small, cut);
  const Id any = select(word(), truth(OpUGreaterThan, size, word(kInfinity)), word(0x7e00), finite);
  return words(OpBitwiseOr, any, sign);
}

SpirvWriter::Id SpirvWriter::dot4(const Node& n) {
  const Id codes = value(n.b), acts = value(n.c);
  Id sum = value(n.a);
  if (feature("integer_dot")) {
    constexpr uint32_t kPacked4x8 = 0;
    m_.capability(DotProduct);
    m_.capability(DotProductInput4x8BitPacked);
    m_.extension("SPV_KHR_integer_dot_product");
    return words(OpIAdd, sum, m_.result(OpSUDot, word(), {acts, codes, kPacked4x8}));
  }
  for (uint32_t i = 0; i < 4; ++i) {
    const Id code = words_by(OpBitwiseAnd, words_by(OpShiftRightLogical, codes, 8 * i), 0xff);
    const Id act = words_by(OpShiftRightArithmetic, words_by(OpShiftLeftLogical, acts, 24 - 8 * i), 24);
    sum = words(OpIAdd, sum, words(OpIMul, code, act));
  }
  return sum;
}

}  // namespace tern::emit
