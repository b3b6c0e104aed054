// A float type with the integers of its size, and the pieces that the polynomials share.
#pragma once

#include <span>
#include <utility>

#include "kir/builder.h"

namespace tern::kir::real {

struct Real {
  Type f = f32, i = i32, u = u32;
  int mantissa = 23;
  int64_t bias = 127;
  double magic = 12582912.0;  // 1.5 * 2^mantissa: adding it rounds to an integer that stands in the low bits
  double ln2_hi = 0.693145751953125, ln2_lo = 1.428606765330187045e-6;  // hi times an exponent is exact
  double smallest = 1.17549435082228750797e-38, lift = 8388608.0;       // smallest normal number; 2^mantissa
  int bits() const { return mantissa == 23 ? 32 : 64; }
};

// Of a value; a host number becomes f32 in place. Fails the kernel where the value is no float, or f64 without 64-bit
// integers.
Real of(V& a, const char* function);
// c[0] + c[1] x + ...
V horner(const V& x, std::span<const double> c);
// 2^n as a number, n within the exponents of normal numbers.
V power_of_two(const Real& t, const V& n);
// What is lost when p = a * b is rounded.
V product_error(const Real& t, const V& a, const V& b, const V& p);
V copy_sign(const Real& t, const V& magnitude, const V& sign);  // magnitude >= 0
double infinity();
double nan();

}  // namespace tern::kir::real
