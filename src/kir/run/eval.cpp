#include "kir/eval.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tern::kir {

namespace {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
T from_bits(uint64_t bits) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(bits));
}
template <class T>
uint64_t to_bits(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}

// Toward zero, saturating, NaN gives 0.
template <class To, class From>
To saturate(From v) {
  if (v != v) return 0;
  // The bound above the largest value is a power of two, so it is exact in every float type.
  const From over = std::ldexp(From(1), std::numeric_limits<To>::digits);
  if (v >= over) return std::numeric_limits<To>::max();
  if (std::is_signed_v<To> ? v < -over : v <= From(-1)) return std::numeric_limits<To>::min();
  return static_cast<To>(v);
}

template <class To, class From>
uint64_t convert(From v) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return to_bits(saturate<To>(v));
  } else {
    return to_bits(static_cast<To>(v));
  }
}

template <class From>
bool cast_from(Type to, From v, uint64_t* out) {
  switch (to) {
    case i32: *out = convert<int32_t>(v); return true;
    case u32: *out = convert<uint32_t>(v); return true;
    case f32: *out = convert<float>(v); return true;
    case i64: *out = convert<int64_t>(v); return true;
    case u64: *out = convert<uint64_t>(v); return true;
    case f64: *out = convert<double>(v); return true;
    default: return false;
  }
}

bool eval_cast(Type to, Type from, uint64_t a, uint64_t* out) {
  switch (from) {
    case b1: return cast_from(to, static_cast<uint32_t>(a & 1), out);
    case i32: return cast_from(to, from_bits<int32_t>(a), out);
    case u32: return cast_from(to, from_bits<uint32_t>(a), out);
    case f32: return cast_from(to, from_bits<float>(a), out);
    case i64: return cast_from(to, from_bits<int64_t>(a), out);
    case u64: return cast_from(to, from_bits<uint64_t>(a), out);
    case f64: return cast_from(to, from_bits<double>(a), out);
    default: return false;
  }
}

template <class T>
bool eval_float(Op op, T a, T b, T c, uint64_t* out) {
  switch (op) {
    case Op::neg: *out = to_bits(-a); return true;
    case Op::abs: *out = to_bits(std::fabs(a)); return true;
    case Op::floor: *out = to_bits(std::floor(a)); return true;
    case Op::round: *out = to_bits(std::nearbyint(a)); return true;
    case Op::sqrt: *out = to_bits(std::sqrt(a)); return true;
    case Op::add: *out = to_bits(a + b); return true;
    case Op::sub: *out = to_bits(a - b); return true;
    case Op::mul: *out = to_bits(a * b); return true;
    case Op::div: *out = to_bits(a / b); return true;
    case Op::rem: *out = to_bits(std::fmod(a, b)); return true;
    case Op::min: *out = to_bits(a < b ? a : b); return true;
    case Op::max: *out = to_bits(a > b ? a : b); return true;
    case Op::fma: *out = to_bits(std::fma(a, b, c)); return true;
    case Op::lt: *out = a < b; return true;
    case Op::le: *out = a <= b; return true;
    case Op::eq: *out = a == b; return true;
    case Op::ne: *out = a != b; return true;
    default: return false;
  }
}

template <class T>
bool eval_int(Op op, T a, T b, uint64_t shift, uint64_t* out) {
  using U = std::make_unsigned_t<T>;
  const U ua = static_cast<U>(a), ub = static_cast<U>(b);
  const bool traps = b == 0 || (std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == T(-1));
  const unsigned count = static_cast<unsigned>(shift & (sizeof(T) * 8 - 1));
  switch (op) {
    case Op::neg: *out = to_bits(U(0) - ua); return true;
    case Op::abs: *out = to_bits(a < 0 ? U(0) - ua : ua); return true;
    case Op::add: *out = to_bits(static_cast<U>(ua + ub)); return true;
    case Op::sub: *out = to_bits(static_cast<U>(ua - ub)); return true;
    case Op::mul: *out = to_bits(static_cast<U>(ua * ub)); return true;
    case Op::div:
      if (!traps) *out = to_bits(static_cast<T>(a / b));
      return !traps;
    case Op::rem:
      if (!traps) *out = to_bits(static_cast<T>(a % b));
      return !traps;
    case Op::min: *out = to_bits(a < b ? a : b); return true;
    case Op::max: *out = to_bits(a > b ? a : b); return true;
    case Op::bit_and: *out = to_bits(static_cast<U>(ua & ub)); return true;
    case Op::bit_or: *out = to_bits(static_cast<U>(ua | ub)); return true;
    case Op::bit_xor: *out = to_bits(static_cast<U>(ua ^ ub)); return true;
    case Op::shl: *out = to_bits(static_cast<U>(ua << count)); return true;
    case Op::shr: *out = to_bits(static_cast<T>(a >> count)); return true;
    case Op::lt: *out = a < b; return true;
    case Op::le: *out = a <= b; return true;
    case Op::eq: *out = a == b; return true;
    case Op::ne: *out = a != b; return true;
    default: return false;
  }
}

bool eval_bool(Op op, uint64_t a, uint64_t b, uint64_t* out) {
  switch (op) {
    case Op::logic_not: *out = a ^ 1; return true;
    case Op::bit_and: *out = a & b; return true;
    case Op::bit_or: *out = a | b; return true;
    case Op::bit_xor:
    case Op::ne: *out = a ^ b; return true;
    case Op::eq: *out = a ^ b ^ 1; return true;
    default: return false;
  }
}

uint64_t eval_dot4(uint32_t acc, uint32_t codes, uint32_t acts) {
  for (int byte = 0; byte < 4; ++byte) {
    const uint32_t code = (codes >> (8 * byte)) & 0xff;
    acc += code * static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(acts >> (8 * byte))));
  }
  return acc;
}

uint64_t eval_lookup(uint32_t indices, uint64_t low, uint64_t high) {
  uint32_t out = 0;
  for (int byte = 0; byte < 4; ++byte) {
    const uint32_t i = (indices >> (8 * byte)) & 15;
    out |= static_cast<uint32_t>((i < 8 ? low : high) >> (8 * (i % 8)) & 0xff) << (8 * byte);
  }
  return out;
}

}  // namespace

bool eval(Op op, Type type, Type operand, uint64_t a, uint64_t b, uint64_t c, uint64_t* out) {
  switch (op) {
    case Op::cast: return eval_cast(type, operand, a, out);
    case Op::bitcast: *out = a; return true;
    case Op::half_to_f32: *out = to_bits(f16_to_f32(static_cast<uint16_t>(a))); return true;
    case Op::f32_to_half: *out = f32_to_f16(from_bits<float>(a)); return true;
    case Op::select: *out = a & 1 ? b : c; return true;
    case Op::dot4:
      *out = eval_dot4(static_cast<uint32_t>(a), static_cast<uint32_t>(b), static_cast<uint32_t>(c));
      return true;
    case Op::lookup: *out = eval_lookup(static_cast<uint32_t>(a), b, c); return true;
    default: break;
  }
  switch (operand) {
    case b1: return eval_bool(op, a & 1, b & 1, out);
    case i32: return eval_int(op, from_bits<int32_t>(a), from_bits<int32_t>(b), b, out);
    case u32: return eval_int(op, from_bits<uint32_t>(a), from_bits<uint32_t>(b), b, out);
    case i64: return eval_int(op, from_bits<int64_t>(a), from_bits<int64_t>(b), b, out);
    case u64: return eval_int(op, from_bits<uint64_t>(a), from_bits<uint64_t>(b), b, out);
    case f32: return eval_float(op, from_bits<float>(a), from_bits<float>(b), from_bits<float>(c), out);
    case f64: return eval_float(op, from_bits<double>(a), from_bits<double>(b), from_bits<double>(c), out);
    default: return false;
  }
}

}  // namespace tern::kir
