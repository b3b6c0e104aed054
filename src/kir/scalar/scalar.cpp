#include "kir/scalar.h"

#include <string>

namespace tern::kir {

namespace {

// ---- what the kir column of core/scalar_ops.inc names. Meanings follow the f64 and i64 columns.

V zero_like(const V& a) { return constant(a.type() == b1 ? u32 : a.type(), 0); }
bool signed_int(const V& a) { return a.type() == i32 || a.type() == i64; }

// By zero gives 0, lowest / -1 wraps: no lane traps.
V divide(const V& a, const V& b) {
  if (is_float(a.type())) return a / b;
  if (!signed_int(a)) return select(b == 0, zero_like(a), a / max(b, 1));
  const V zero = b == 0, minus = b == -1;
  return select(zero, zero_like(a), select(minus, -a, a / select(zero || minus, 1, b)));
}
V remainder(const V& a, const V& b) {
  if (is_float(a.type())) return fmod(a, b);
  if (!signed_int(a)) return select(b == 0, a, a % max(b, 1));
  const V zero = b == 0, minus = b == -1;
  return select(zero, a, select(minus, zero_like(a), a % select(zero || minus, 1, b)));
}
// NaN wins.
V minimum(const V& a, const V& b) {
  if (!is_float(a.type())) return min(a, b);
  return select(a < b || is_nan(a), a, b);
}
V maximum(const V& a, const V& b) {
  if (!is_float(a.type())) return max(a, b);
  return select(b < a || is_nan(a), a, b);
}
V power(const V& a, const V& b) { return pow(a, b); }
V arc_tangent2(const V& a, const V& b) { return atan2(a, b); }
V negate(const V& a) { return -a; }
V absolute(const V& a) { return abs(a); }
V sign_of(const V& a) {
  const V zero = zero_like(a);
  const V up = select(zero < a, constant(zero.type(), 1), is_float(a.type()) ? a : zero);
  if (!is_float(a.type()) && !signed_int(a)) return up;
  return select(a < zero, constant(zero.type(), -1), up);
}
V square_root(const V& a) { return sqrt(a); }
V exponential(const V& a) { return exp(a); }
V logarithm(const V& a) { return log(a); }
V sine(const V& a) { return sin(a); }
V cosine(const V& a) { return cos(a); }
V hyperbolic_tangent(const V& a) { return tanh(a); }
V error_function(const V& a) { return erf(a); }
// 0.5 (1 + tanh u) = sigmoid(2u): one exponential, and no cancellation where the result is small.
V gelu_tanh_of(const V& a) { return a * sigmoid(fma(a * a * a, 0.044715, a) * 1.5957691216057308); }
V gelu_erf_of(const V& a) { return a * 0.5 * (erf(a * 0.70710678118654752) + 1.0); }
V softplus_of(const V& a) {
  const V t = exp(-abs(a)), u = t + 1.0;  // log1p(t) = log(u) + (t - (u - 1)) / u
  return select(a > 0.0, a, zero_like(a)) + (log(u) + (t - (u - 1.0)) / u);
}
V floor_of(const V& a) { return floor(a); }
V ceil_of(const V& a) { return ceil(a); }
V round_half_even(const V& a) { return round(a); }
V choose(const V& a, const V& b, const V& c) { return select(a, b, c); }
V fused_multiply_add(const V& a, const V& b, const V& c) { return fma(a, b, c); }

// Amounts outside the type give what shifting bit by bit would.
V amount_inside(const V& a, const V& b) {
  const V limit = constant(b.type(), is_wide64(a.type()) ? 64 : 32);
  return signed_int(b) ? constant(b.type(), 0) <= b && b < limit : b < limit;
}
V shift_left(const V& a, const V& b) { return select(amount_inside(a, b), a << cast(u32, b), zero_like(a)); }
V shift_right(const V& a, const V& b) {
  const V out = signed_int(a) ? a >> (is_wide64(a.type()) ? 63 : 31) : zero_like(a);
  return select(amount_inside(a, b), a >> cast(u32, b), out);
}

// ---- small types

// Back into the range of an 8- or 16-bit type, as storing and loading it would.
V wrap(DType dtype, const V& v) {
  if (!is_int(v.type()) || dtype_bytes(dtype) >= 4) return v;
  const int bits = static_cast<int>(dtype_bytes(dtype)) * 8;
  return v.type() == i32 ? sign_extend(v, bits) : v & ((1u << bits) - 1);
}

V convert(B& b, const V& a, DType to) {
  auto type = value_type(to);
  if (!type) {
    b.fail(type.error().text);
    return a;
  }
  if (*type == b1) return cast(b1, a);
  if (to == DType::f16) return half_to_f32(f32_to_half(cast(f32, a)));
  if (to == DType::bf16) return bf16_to_f32(f32_to_bf16(cast(f32, a)));
  const uint32_t bytes = dtype_bytes(to);
  if (!is_int(*type) || bytes >= 4 || a.type() == b1) return cast(*type, a);
  if (!is_float(a.type())) return wrap(to, cast(*type, a));
  // Floats saturate, like every cast of one.
  const DTypeInfo& range = dtype_info(to);
  const V held = clamp(cast(i32, a), static_cast<int>(range.lowest), static_cast<int>(range.highest));
  return *type == u32 ? bitcast(u32, held) : held;
}

using Spelling = V (*)(const V& a, const V& b, const V& c);
constexpr Spelling kSpellings[] = {
#define TERN_SCALAR(name, arity, rule, f64_value, i64_value, kir_value) \
  [](const V& a, [[maybe_unused]] const V& b, [[maybe_unused]] const V& c) -> V { return kir_value; },
#include "core/scalar_ops.inc"
#undef TERN_SCALAR
};

}  // namespace

V scalar(B& b, ScalarOp op, DType dtype, std::span<const V> in) {
  const ScalarRow& row = scalar_row(op);
  const auto type = value_type(dtype);
  if (!type) b.fail(std::string(row.name) + ": " + type.error().text);
  if (in.size() != row.arity) b.fail(std::string(row.name) + " of " + std::to_string(in.size()) + " values");
  if (b.failed()) return b.constant(type ? *type : f32, 0);
  if (op == ScalarOp::cast) return convert(b, b.typed(in[0], in[0].literal() ? f32 : in[0].type()), dtype);
  V v[3] = {in[0], in[0], in[0]};
  for (size_t i = 0; i < in.size(); ++i) v[i] = b.typed(in[i], op == ScalarOp::select && i == 0 ? b1 : *type);
  return wrap(dtype, kSpellings[static_cast<size_t>(op)](v[0], v[1], v[2]));
}

}  // namespace tern::kir
