// exp, log and what is made of them. Largest errors found, in ulp of f32 (tests/unit/kir/math_test.cpp holds the
// bounds): exp 1.1, exp2 1.0, log 1.0, log2 1.9, tanh 1.2, sigmoid 2.0, erf 1.2, pow 1.6; of f64: exp 1.0, log 0.8,
// tanh 1.2, erf 1.6, pow 1.3. NaN gives NaN, infinities their limits; results below the normal numbers are rounded
// once.
#include <cmath>
#include <limits>

#include "kir/make/real.h"

namespace tern::kir {

namespace {
#include "kir/make/polynomials.inc"
}

namespace real {

double infinity() { return std::numeric_limits<double>::infinity(); }
double nan() { return std::numeric_limits<double>::quiet_NaN(); }

Real of(V& a, const char* function) {
  B& k = B::current();
  if (a.literal() || !a.valid()) a = k.typed(a, f32);
  if (!is_float(a.type())) {
    k.fail(std::string(function) + " of " + std::string(type_name(a.type())) + "; it takes f32 or f64");
    a = k.constant(f32, 0);
  }
  if (a.type() != f64) return {};
  if (!k.caps().i64) k.fail(std::string(function) + " of f64 wants 64-bit integers, which the device lacks");
  return {f64,
          i64,
          u64,
          52,
          1023,
          6755399441055744.0,
          0.69314718055966295651,
          2.8235290563031577103e-13,
          2.2250738585072014e-308,
          4503599627370496.0};
}

V horner(const V& x, std::span<const double> c) {
  V r = V(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) r = fma(r, x, c[i]);
  return r;
}

V power_of_two(const Real& t, const V& n) { return bitcast(t.f, (n + t.bias) << t.mantissa); }

V product_error(const Real& t, const V& a, const V& b, const V& p) {
  if (B::current().caps().fma) return fma(a, b, -p);
  const double splitter = t.f == f64 ? 134217729.0 : 4097.0;
  const auto split = [&](const V& v) {
    const V big = v * splitter, hi = big - (big - v);
    return std::pair(hi, v - hi);
  };
  const auto [ah, al] = split(a);
  const auto [bh, bl] = split(b);
  return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}

V copy_sign(const Real& t, const V& magnitude, const V& sign) {
  const V mask = bitcast(t.u, B::current().typed(V(-0.0), t.f));
  return bitcast(t.f, bitcast(t.u, magnitude) | (bitcast(t.u, sign) & mask));
}

}  // namespace real

using real::Real;

namespace {

// x = n ln 2 + r, |r| <= ln 2 / 2
struct Reduced {
  V n, r;  // n as an integer of the type's size
};
Reduced reduce_exp(const Real& t, const V& x, const V& tail = {}) {
  const V shifted = fma(x, 1.4426950408889634, t.magic), n = shifted - t.magic;
  V r = fma(n, -t.ln2_hi, x);
  r = fma(n, -t.ln2_lo, r);
  if (tail.valid()) r = r + tail;
  return {bitcast(t.i, shifted) - bitcast(t.i, B::current().typed(t.magic, t.f)), r};
}

V exp_poly(const Real& t, const V& r) {
  const V p = real::horner(r, t.f == f64 ? std::span<const double>(kExp_f64) : std::span<const double>(kExp_f32));
  return fma(r * r, p, r) + 1.0;
}

// e^r 2^n, rounded once where it leaves the normal numbers.
V scaled(const Real& t, const V& p, const V& n) {
  const V half = n >> 1;
  return p * real::power_of_two(t, half) * real::power_of_two(t, n - half);
}

// exp where the result is known to be normal.
V exp_normal(const Real& t, const V& x) {
  const Reduced q = reduce_exp(t, x);
  return exp_poly(t, q.r) * real::power_of_two(t, q.n);
}

V held(const V& x, double lo, double hi) {  // NaN passes
  const V low = select(x < lo, lo, x);
  return select(low > hi, hi, low);
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), for positive finite x; f = m - 1.
struct Split {
  V e, m, f;
};
Split split_log(const Real& t, const V& x) {
  const V tiny = x < t.smallest;
  const V bits = bitcast(t.i, select(tiny, x * t.lift, x));
  const int64_t root = t.f == f64 ? 0x3fe6a09e667f3bcdll : 0x3f3504f3ll, low = (int64_t{1} << t.mantissa) - 1;
  const V above = bits - root;
  const V e = (above >> t.mantissa) - select(tiny, B::current().typed(t.mantissa, t.i), 0);
  const V m = bitcast(t.f, (above & low) + root);
  return {cast(t.f, e), m, m - 1.0};
}

// log(1 + f) + e ln 2; with the parts given as lo and hi where e is an exponent.
V log_of(const Real& t, const Split& x) {
  const V s = x.f * x.f;
  if (t.f == f32) {
    V y = x.f * s * real::horner(x.f, kLog_f32);
    y = fma(x.e, t.ln2_lo, y);
    y = fma(s, -0.5, y);
    return fma(x.e, t.ln2_hi, x.f + y);
  }
  const V half = s * 0.5, q = x.f / (x.f + 2.0), z = q * q;
  const V r = z * real::horner(z, kLogRatio_f64);
  return fma(x.e, t.ln2_hi, x.f - (half - fma(q, half + r, x.e * t.ln2_lo)));
}

V log_limits(const V& a, const V& inside) {
  V r = select(a < real::infinity(), inside, a);
  r = select(a < 0.0, real::nan(), r);
  return select(a == 0.0, -real::infinity(), r);
}

}  // namespace

V exp(const V& v) {
  V a = v;
  const Real t = real::of(a, "exp");
  const Reduced q = reduce_exp(t, t.f == f64 ? held(a, -746.0, 710.0) : held(a, -104.0, 89.0));
  return scaled(t, exp_poly(t, q.r), q.n);
}

V exp2(const V& v) {
  V a = v;
  const Real t = real::of(a, "exp2");
  const V x = t.f == f64 ? held(a, -1076.0, 1025.0) : held(a, -151.0, 129.0);
  const V shifted = x + t.magic, n = bitcast(t.i, shifted) - bitcast(t.i, B::current().typed(t.magic, t.f));
  return scaled(t, exp_poly(t, (x - (shifted - t.magic)) * 0.69314718055994530942), n);
}

V log(const V& v) {
  V a = v;
  const Real t = real::of(a, "log");
  return log_limits(a, log_of(t, split_log(t, a)));
}

V log2(const V& v) {
  V a = v;
  const Real t = real::of(a, "log2");
  Split x = split_log(t, a);
  const V e = x.e;
  x.e = B::current().constant(t.f, 0);
  return log_limits(a, fma(log_of(t, x), 1.4426950408889634, e));
}

V sigmoid(const V& a) { return 1.0 / (exp(-a) + 1.0); }

V tanh(const V& v) {
  V x = v;
  const Real t = real::of(x, "tanh");
  const V a = abs(x), z = x * x, top = select(a > 22.0, 22.0, a);
  const V small = fma(
      x * z, real::horner(z, t.f == f64 ? std::span<const double>(kTanh_f64) : std::span<const double>(kTanh_f32)), x);
  const V large = 1.0 - 2.0 / (exp_normal(t, top * 2.0) + 1.0);
  return select(a < 0.625, small, real::copy_sign(t, large, x));
}

V erf(const V& v) {
  V x = v;
  const Real t = real::of(x, "erf");
  const V a = abs(x), z = x * x;
  const V small =
      fma(x, real::horner(z, t.f == f64 ? std::span<const double>(kErf_f64) : std::span<const double>(kErf_f32)), x);
  V large;  // 1 - erfc
  if (t.f == f32) {
    const V top = select(a > 4.0, 4.0, a);
    large = 1.0 - exp_normal(t, real::horner(top, kLogErfc_f32));
  } else {
    const V top = select(a > 6.0, 6.0, a), u = 2.0 / (top + 2.0);
    large = 1.0 - u * exp_normal(t, fma(-top, top, real::horner(u, kLogErfc_f64)));
  }
  return select(a < 1.0, small, real::copy_sign(t, large, x));
}

namespace {

// log(x) as hi + lo with about half a word more than the type holds.
std::pair<V, V> log_pair(const Real& t, const V& positive) {
  const Split x = split_log(t, positive);
  const V d = x.m + 1.0, d_lost = x.m - (d - 1.0);
  const V q = x.f / d, p = q * d;
  const V rest = (x.f - p) - real::product_error(t, q, d, p);
  const V q_lost = (rest - q * d_lost) / d;
  const V z = q * q;
  const V cubic =
      q * z *
      real::horner(z, t.f == f64 ? std::span<const double>(kLogRatio_f64) : std::span<const double>(kLogRatio_f32));
  const V big = x.e * t.ln2_hi, twice = q * 2.0, s = big + twice;
  const V lo = (twice - (s - big)) + (fma(x.e, t.ln2_lo, q_lost * 2.0) + cubic);
  const V hi = s + lo;
  return {hi, lo - (hi - s)};
}

}  // namespace

V pow(const V& base, const V& exponent) {
  V a = base, b = exponent;
  B::current().unify(a, b, "to the power");
  const Real t = real::of(a, "pow");
  real::of(b, "pow");
  const bool wide = t.f == f64;
  const double huge = wide ? 1e290 : 1e30;
  const V magnitude = abs(a);
  const auto [hi, lo] = log_pair(t, magnitude);
  const V y = held(b, -huge, huge), p = y * hi;
  // Beyond these the result is 0 or infinite whatever the tail says, and the tail may be infinite itself.
  const V inside = abs(p) < (wide ? 747.0 : 105.0);
  const V tail = select(inside, fma(y, lo, real::product_error(t, y, hi, p)), 0.0);
  const Reduced q = reduce_exp(t, wide ? held(p, -746.0, 710.0) : held(p, -104.0, 89.0), tail);
  V r = scaled(t, exp_poly(t, q.r), q.n);
  r = select(magnitude == 0.0, select(b < 0.0, real::infinity(), B::current().constant(t.f, 0)), r);
  r = select(magnitude == real::infinity(), select(b < 0.0, 0.0, magnitude), r);
  // A negative base: the sign of an odd exponent; no real value for a broken one.
  const V whole = floor(b) == b, half = b * 0.5, odd = whole && floor(half) != half && abs(b) < real::infinity();
  r = select(odd, real::copy_sign(t, r, a), r);
  r = select(a < 0.0 && !whole && magnitude < real::infinity(), real::nan(), r);
  r = select(is_nan(a), a, select(is_nan(b), b, r));
  return select(b == 0.0 || a == 1.0, 1.0, r);
}

}  // namespace tern::kir
