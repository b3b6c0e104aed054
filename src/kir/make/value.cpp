// Operators and the small functions on values.
#include <bit>
#include <vector>

#include "kir/builder.h"

namespace tern::kir {

namespace {

B& cur() { return B::current(); }

enum class Takes : uint8_t { number, integer, bits, any };

bool takes(Takes what, Type t) {
  switch (what) {
    case Takes::number: return is_int(t) || is_float(t);
    case Takes::integer: return is_int(t);
    case Takes::bits: return is_int(t) || t == b1;
    case Takes::any: return true;
  }
  return false;
}

V binary(Op op, std::string_view sign, Takes what, bool compares, V a, V b) {
  B& k = cur();
  const Type t = k.unify(a, b, sign);
  if (!takes(what, t)) k.fail("'" + std::string(sign) + "' on " + std::string(type_name(t)));
  return k.emit(op, compares ? b1 : t, a, b);
}

V unary(Op op, Takes what, const V& v) {
  B& k = cur();
  V a = v, same = v;
  const Type t = k.unify(a, same, "and");
  if (!takes(what, t)) k.fail(std::string(op_info(op).name) + " of " + std::string(type_name(t)));
  return k.emit(op, t, a);
}

V float_unary(Op op, const V& v) {
  B& k = cur();
  const V a = v.literal() ? k.typed(v, f32) : v;
  if (!is_float(a.type())) {
    k.fail(std::string(op_info(op).name) + " of " + std::string(type_name(a.type())) + "; it takes f32 or f64");
    return k.constant(f32, 0);
  }
  return k.emit(op, a.type(), a);
}

V shift(Op op, V a, const V& count) {
  B& k = cur();
  V same = a;
  const Type t = k.unify(a, same, "and");
  if (!is_int(t)) k.fail("shift of " + std::string(type_name(t)));
  V n = count.literal() ? k.typed(count, u32) : count;
  if (n.type() == i32) n = bitcast(u32, n);
  n = k.typed(n, u32) & V(is_wide64(t) ? 63 : 31);
  return k.emit(op, t, a, n);
}

}  // namespace

V operator+(const V& a, const V& b) { return binary(Op::add, "+", Takes::number, false, a, b); }
V operator-(const V& a, const V& b) { return binary(Op::sub, "-", Takes::number, false, a, b); }
V operator*(const V& a, const V& b) { return binary(Op::mul, "*", Takes::number, false, a, b); }
V operator/(const V& a, const V& b) { return binary(Op::div, "/", Takes::number, false, a, b); }
V operator%(const V& a, const V& b) { return binary(Op::rem, "%", Takes::integer, false, a, b); }
V operator&(const V& a, const V& b) { return binary(Op::bit_and, "&", Takes::bits, false, a, b); }
V operator|(const V& a, const V& b) { return binary(Op::bit_or, "|", Takes::bits, false, a, b); }
V operator^(const V& a, const V& b) { return binary(Op::bit_xor, "^", Takes::bits, false, a, b); }
V operator<(const V& a, const V& b) { return binary(Op::lt, "<", Takes::number, true, a, b); }
V operator<=(const V& a, const V& b) { return binary(Op::le, "<=", Takes::number, true, a, b); }
V operator>(const V& a, const V& b) { return b < a; }
V operator>=(const V& a, const V& b) { return b <= a; }
V operator==(const V& a, const V& b) { return binary(Op::eq, "==", Takes::any, true, a, b); }
V operator!=(const V& a, const V& b) { return binary(Op::ne, "!=", Takes::any, true, a, b); }
V operator&&(const V& a, const V& b) { return cur().typed(a, b1) & b; }
V operator||(const V& a, const V& b) { return cur().typed(a, b1) | b; }
V operator<<(const V& a, const V& count) { return shift(Op::shl, a, count); }
V operator>>(const V& a, const V& count) { return shift(Op::shr, a, count); }
V operator-(const V& a) { return unary(Op::neg, Takes::number, a); }
V operator!(const V& a) { return cur().emit(Op::logic_not, b1, cur().typed(a, b1)); }
V operator~(const V& a) {
  V v = a, same = a;
  const Type t = cur().unify(v, same, "and");
  if (!is_int(t)) cur().fail("'~' on " + std::string(type_name(t)));
  return v ^ cur().constant(t, is_wide64(t) ? ~uint64_t{0} : 0xffffffffu);
}

V min(const V& a, const V& b) { return binary(Op::min, "min", Takes::number, false, a, b); }
V max(const V& a, const V& b) { return binary(Op::max, "max", Takes::number, false, a, b); }
V clamp(const V& v, const V& lo, const V& hi) { return min(max(v, lo), hi); }
V abs(const V& a) { return a.type() == u32 || a.type() == u64 ? a : unary(Op::abs, Takes::number, a); }

V select(const V& cond, const V& when_true, const V& when_false) {
  B& k = cur();
  V a = when_true, b = when_false;
  const Type t = k.unify(a, b, "or");
  return k.emit(Op::select, t, k.typed(cond, b1), a, b);
}

V fma(const V& a, const V& b, const V& c) {
  B& k = cur();
  V x = a, y = b, z = c;
  if (x.literal() && y.literal()) k.unify(x, z, "*");
  const Type t = k.unify(x, y, "*");
  z = k.typed(z, t);
  if (!is_float(t) || !k.caps().fma) return x * y + z;
  return k.emit(Op::fma, t, x, y, z);
}

V cast(Type to, const V& a) {
  B& k = cur();
  if (!type_info(to).value) {
    k.fail("cast to " + std::string(type_name(to)) + ", a storage type; store through a view of it instead");
    return k.constant(f32, 0);
  }
  if (to == b1) {
    V v = a, same = a;
    return k.unify(v, same, "and") == b1 ? v : v != 0;
  }
  if (a.literal() && is_float(to)) return k.typed(a, to);
  V v = a, same = a;
  k.unify(v, same, "and");
  return k.emit(Op::cast, to, v);
}

V bitcast(Type to, const V& a) {
  B& k = cur();
  V v = a, same = a;
  const Type from = k.unify(v, same, "and");
  if (type_bytes(from) != type_bytes(to) || !type_info(to).value || to == b1 || from == b1) {
    k.fail("bitcast of " + std::string(type_name(from)) + " to " + std::string(type_name(to)));
    return k.constant(type_info(to).value ? to : f32, 0);
  }
  return k.emit(Op::bitcast, to, v);
}

V half_to_f32(const V& bits) { return cur().emit(Op::half_to_f32, f32, cur().typed(bits, u32)); }
V f32_to_half(const V& value) { return cur().emit(Op::f32_to_half, u32, cur().typed(value, f32)); }
V bf16_to_f32(const V& bits) { return bitcast(f32, cur().typed(bits, u32) << 16); }

V f32_to_bf16(const V& value) {
  const V bits = bitcast(u32, cur().typed(value, f32));
  const V rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  // Rounding could carry a NaN's payload into an infinity; the quiet bit keeps it one.
  return select((bits & 0x7fffffff) > 0x7f800000, (bits >> 16) | 0x40, rounded);
}

V dot4(const V& acc, const V& codes, const V& acts) {
  B& k = cur();
  const V d = k.typed(acc, i32), c = k.typed(codes, u32), a = k.typed(acts, u32);
  if (k.caps().dot4 == Dot4::fast) return k.emit(Op::dot4, i32, d, c, a);
  V total = d;
  for (int byte = 0; byte < 4; ++byte) {
    const V code = bitcast(i32, byte == 3 ? c >> 24 : (c >> (8 * byte)) & 0xff);
    total = total + code * (bitcast(i32, a << (24 - 8 * byte)) >> 24);
  }
  return total;
}

V lookup4(const V& indices, const std::array<uint8_t, 16>& table) {
  B& k = cur();
  const V x = k.typed(indices, u32);
  if (k.caps().byte_lookup) {
    uint64_t halves[2] = {};
    for (size_t i = 0; i < table.size(); ++i) halves[i / 8] |= uint64_t{table[i]} << (8 * (i % 8));
    return k.emit(Op::lookup, u32, x, k.constant(u64, halves[0]), k.constant(u64, halves[1]));
  }
  // A tree of choices, all four bytes side by side: bit by bit of the indices, half of what is left goes.
  std::vector<V> left;
  for (const uint8_t entry : table) left.push_back(k.constant(u32, entry * 0x01010101u));
  for (int bit = 0; bit < 4; ++bit) {
    const V take = (x >> bit & 0x01010101) * 255;
    for (size_t i = 0; i < left.size() / 2; ++i) left[i] = left[2 * i] ^ ((left[2 * i] ^ left[2 * i + 1]) & take);
    left.resize(left.size() / 2);
  }
  return left[0];
}

V mul_hi(const V& a, const V& b) {
  B& k = cur();
  const V x = k.typed(a, u32), y = k.typed(b, u32);
  if (k.caps().i64) return cast(u32, (cast(u64, x) * cast(u64, y)) >> 32);
  const V x0 = x & 0xffff, x1 = x >> 16, y0 = y & 0xffff, y1 = y >> 16;
  const V mid = x1 * y0 + ((x0 * y0) >> 16);  // below 2^32
  const V low = x0 * y1 + (mid & 0xffff);
  return x1 * y1 + (mid >> 16) + (low >> 16);
}

V floor(const V& a) { return float_unary(Op::floor, a); }
V ceil(const V& a) { return -floor(-a); }
V trunc(const V& a) { return select(a < 0.0, ceil(a), floor(a)); }
V round(const V& a) { return float_unary(Op::round, a); }
V sqrt(const V& a) { return float_unary(Op::sqrt, a); }

V sign_extend(const V& a, int bits) {
  B& k = cur();
  const V v = a.type() == u32 ? bitcast(i32, a) : k.typed(a, i32);
  return (v << (32 - bits)) >> (32 - bits);
}

V sum(std::span<const V> values) {
  std::vector<V> v(values.begin(), values.end());
  if (v.empty()) cur().fail("the sum of no values");
  for (size_t n = v.size(); n > 1; n = (n + 1) / 2) {
    const size_t half = (n + 1) / 2;
    for (size_t i = 0; i < n - half; ++i) v[i] = v[i] + v[i + half];
  }
  return v.empty() ? V(0.f) : v[0];
}

V sum(std::span<const Var> all) {
  std::vector<V> values;
  for (const Var& v : all) values.push_back(v.get());
  return sum(values);
}

}  // namespace tern::kir
