// sin, cos, atan2 and an exact fmod. Largest errors found (bounds in tests/unit/kir/math_test.cpp) over all finite f32:
// sin 1.8, cos 1.7, atan2 1.5 ulp; f64: sin and cos 2, atan2 1.8 ulp.
#include <algorithm>
#include <array>
#include <vector>

#include "kir/make/real.h"

namespace tern::kir {

namespace {

#include "kir/make/polynomials.inc"

using real::Real;

// x = q pi/2 + r, |r| <= pi/4 (a little more after rounding); q modulo 4 counts.
struct Quadrant {
  V q, r;  // q: i32
};

// Subtracts q pi/2 in parts, so that the first differences are exact. Holds below `bound`.
Quadrant by_parts(const Real& t, const V& x, double* bound) {
  static constexpr std::array<double, 4> kF32Fused = {1.5707962512969970703, 7.5497894158615963534e-8,
                                                      5.3903025299577647655e-15, 0};
  static constexpr std::array<double, 4> kF32 = {1.5703125, 0.0004837512969970703125, 7.5495336204767227173e-8,
                                                 2.563344068257089603e-12};
  static constexpr std::array<double, 4> kF64Fused = {1.570796326794896558, 6.1232339957367648033e-17,
                                                      1.0828566739219138942e-32, 0};
  static constexpr std::array<double, 4> kF64 = {1.5707963267341256142, 6.0771005063039659766e-11,
                                                 2.0222662487111664558e-21, 8.47842766036889957e-32};
  const bool fused = B::current().caps().fma, wide = t.f == f64;
  *bound = wide ? (fused ? 1073741824.0 : 1048576.0) : (fused ? 131072.0 : 4096.0);
  const V shifted = fma(x, 0.63661977236758134308, t.magic), n = shifted - t.magic;
  V r = x;
  for (double part : wide ? (fused ? kF64Fused : kF64) : (fused ? kF32Fused : kF32)) {
    if (part != 0) r = fma(n, -part, r);
  }
  const V q = bitcast(t.i, shifted);  // magic's own low bits are zero
  return {wide ? cast(i32, q) : q, r};
}

// 2/pi behind 32 zero bits, 32 bits a word.
constexpr std::array<uint32_t, 40> kTwoOverPi = {
    0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
    0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5,
    0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff,
    0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7,
    0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20};

uint64_t two_over_pi(const Real& t, size_t word) {
  if (t.f == f32) return kTwoOverPi[word];
  return uint64_t{kTwoOverPi[2 * word]} << 32 | kTwoOverPi[2 * word + 1];
}

// High half of a product of two words.
V product_high(const Real& t, const V& a, const V& b) {
  if (t.f == f32) return mul_hi(a, b);
  const V a0 = a & 0xffffffffll, a1 = a >> 32, b0 = b & 0xffffffffll, b1_ = b >> 32;
  const V mid = a1 * b0 + ((a0 * b0) >> 32);  // below 2^64
  const V low = a0 * b1_ + (mid & 0xffffffffll);
  return a1 * b1_ + (mid >> 32) + (low >> 32);
}

// Payne and Hanek: for large x only the bits of 2/pi that reach below 4 count, and three words of them are enough. |x|
// is at least 2^12.
Quadrant by_window(const Real& t, const V& x) {
  B& k = B::current();
  const bool wide = t.f == f64;
  const int bits = t.bits(), stages = wide ? 4 : 3;
  const V raw = bitcast(t.u, abs(x)), m = (raw & ((int64_t{1} << t.mantissa) - 1)) | (int64_t{1} << t.mantissa);
  // The bit of weight 2^1 of 2/pi * 2^exponent: its place in the table.
  const V first = cast(u32, raw >> t.mantissa) - (wide ? 1045 : 120), word = first >> (wide ? 6 : 5),
          shift = first & (bits - 1);
  std::vector<V> w;
  for (size_t i = 0; i < (wide ? 20u : 8u); ++i) w.push_back(k.constant(t.u, two_over_pi(t, i)));
  for (int stage = stages; stage-- > 0;) {  // moves the words that are wanted to the front
    const size_t step = size_t{1} << stage, keep = 3 + step;
    const V moved = (word & step) != 0;
    for (size_t i = 0; i < keep && i + step < w.size(); ++i) w[i] = select(moved, w[i + step], w[i]);
    w.resize(std::min(w.size(), keep));
  }
  std::array<V, 3> window;
  for (size_t j = 0; j < 3; ++j) window[j] = (w[j] << shift) | ((w[j + 1] >> 1) >> (V(bits - 1) - shift));
  const V carry_in = product_high(t, m, window[2]), low = m * window[1] + carry_in;
  const V carry = select(low < carry_in, k.constant(t.u, 1), 0);
  const V high = m * window[0] + product_high(t, m, window[1]) + carry;
  // high:low counts quarter turns, two bits before the point; split into the nearest quarter and a signed rest.
  const V q = (high + (int64_t{1} << (bits - 3))) >> (bits - 2);
  const V rest = bitcast(t.i, high - (q << (bits - 2))), flip = rest >> (bits - 1);
  const V a = cast(t.f, rest ^ flip), b = cast(t.f, low ^ bitcast(t.u, flip));
  const V size = fma(b, wide ? 0x1p-64 : 0x1p-32, a) * (1.5707963267948966 * (wide ? 0x1p-62 : 0x1p-30));
  const V r = select(flip != 0, -size, size), turns = cast(i32, q), minus = x < 0.0;
  return {select(minus, -turns, turns), select(is_inf(x), real::nan(), select(minus, -r, r))};
}

Quadrant quadrant(const Real& t, const V& x) {
  double bound = 0;
  const Quadrant near = by_parts(t, x, &bound);
  const V far = abs(x) > bound;
  const Var q = var(i32, near.q), r = var(t.f, near.r);
  If(far, [&] {
    const Quadrant exact = by_window(t, x);
    q.set(exact.q);
    r.set(exact.r);
  });
  return {q.get(), r.get()};
}

// sin(x + turn pi/2)
V wave(const char* name, const V& v, int turn) {
  V x = v;
  const Real t = real::of(x, name);
  const Quadrant at = quadrant(t, x);
  const V z = at.r * at.r, q = at.q + turn;
  const bool wide = t.f == f64;
  const V s = fma(at.r * z,
                  real::horner(z, wide ? std::span<const double>(kSin_f64) : std::span<const double>(kSin_f32)), at.r);
  const V c = fma(z * z, real::horner(z, wide ? std::span<const double>(kCos_f64) : std::span<const double>(kCos_f32)),
                  fma(z, -0.5, 1.0));
  const V value = select((q & 1) != 0, c, s);
  return select((q & 2) != 0, -value, value);
}

}  // namespace

V sin(const V& a) { return wave("sin", a, 0); }
V cos(const V& a) { return wave("cos", a, 1); }

V atan2(const V& y_in, const V& x_in) {
  V y = y_in, x = x_in;
  B::current().unify(y, x, "and");
  const Real t = real::of(y, "atan2");
  real::of(x, "atan2");
  const V ay = abs(y), ax = abs(x), steep = ax < ay;
  const V small = select(steep, ax, ay), large = select(steep, ay, ax);
  // Equal infinities are a diagonal, equal zeros are not.
  const V ratio = select(small == 0.0, 0.0, select(small == large, 1.0, small / large));
  V r;
  if (t.f == f32) {
    const V z = ratio * ratio;
    r = fma(ratio * z, real::horner(z, kAtan_f32), ratio);
  } else {
    const V beyond = ratio > 0.41421356237309503, u = select(beyond, (ratio - 1.0) / (ratio + 1.0), ratio), z = u * u;
    const V at = fma(u * z, real::horner(z, kAtan_f64), u);
    r = select(beyond, at + 3.0616169978683830e-17 + 0.78539816339744828, at);
  }
  const double half_lost = t.f == f64 ? 6.123233995736766e-17 : -4.37113883e-8,
               half = t.f == f64 ? 1.5707963267948966 : 1.57079637050628662;
  r = select(steep, half - (r - half_lost), r);
  const V negative = bitcast(t.i, x) < 0;
  r = select(negative, half * 2.0 - (r - half_lost * 2.0), r);
  r = real::copy_sign(t, r, y);
  return select(is_nan(x), x, select(is_nan(y), y, r));
}

V is_nan(const V& a) { return a != a; }
V is_inf(const V& a) { return abs(a) == real::infinity(); }
V is_finite(const V& a) { return abs(a) < real::infinity(); }

// Exact: long division of the significands, eight bits a turn.
V fmod(const V& a_in, const V& b_in) {
  V a = a_in, b = b_in;
  B& k = B::current();
  k.unify(a, b, "%");
  const Real t = real::of(a, "fmod");
  real::of(b, "fmod");
  const V sign = bitcast(t.u, k.typed(-0.0, t.f)), ua = bitcast(t.u, a) & ~sign, ub = bitcast(t.u, b) & ~sign;
  const int64_t one = int64_t{1} << t.mantissa;
  const auto exponent = [&](const V& bits) { return max(cast(i32, bits >> t.mantissa), 1); };
  const auto significand = [&](const V& bits) {
    return (bits & (one - 1)) | select((bits >> t.mantissa) == 0, k.constant(t.u, 0), one);
  };
  const V eb = exponent(ub), mb = max(significand(ub), 1);
  const Var left = var(i32, exponent(ua) - eb), rest = var(t.u, significand(ua) % mb);
  For(0, t.f == f64 ? 263 : 32, [&](V) {
    If(left.get() > 0, [&] {
      const V step = min(left.get(), 8);
      rest.set((rest.get() << step) % mb);
      left.set(left.get() - step);
    });
  });
  // rest * 2^(eb - bias - mantissa), exact in two steps.
  const V e = eb - (t.bias + t.mantissa), half = e >> 1;
  const auto scale = [&](const V& n) { return real::power_of_two(t, t.f == f64 ? cast(i64, n) : n); };
  V r = cast(t.f, rest.get()) * scale(half) * scale(e - half);
  r = select(ua < ub, abs(a), r);
  r = real::copy_sign(t, r, a);
  const V undefined = b == 0.0 || !is_finite(a) || is_nan(b);
  return select(undefined, real::nan(), r);
}

}  // namespace tern::kir
