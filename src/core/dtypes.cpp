// The dtype table and the conversions of the narrow float types.
#include <array>
#include <bit>
#include <cmath>

#include "tern/dtype.h"

namespace tern {
namespace {

constexpr std::array<DTypeInfo, kDTypeCount> kRows = {{
#define TERN_DTYPE(id, name, bytes, kind, bits, lowest, highest) {name, bytes, DTypeKind::kind, bits, lowest, highest},
#include "core/dtypes.inc"
#undef TERN_DTYPE
}};

// How a narrow binary float is laid out. Specials: IEEE types give the top exponent to infinities and NaN; f8e4m3 (OCP
// 8-bit floating point specification 1.0) has no infinity and one NaN magnitude (all ones), its top exponent holds
// numbers too.
struct Layout {
  int exponent_bits, mantissa_bits;
  bool ieee;
};
constexpr Layout kF16{5, 10, true}, kF8E4M3{4, 3, false}, kF8E5M2{5, 2, true};

template <Layout L>
float widen(uint32_t bits) {
  constexpr int kBias = (1 << (L.exponent_bits - 1)) - 1;
  constexpr uint32_t kMantissa = (1u << L.mantissa_bits) - 1, kExponent = (1u << L.exponent_bits) - 1;
  const uint32_t sign = (bits >> (L.exponent_bits + L.mantissa_bits)) & 1;
  const uint32_t exponent = (bits >> L.mantissa_bits) & kExponent, mantissa = bits & kMantissa;
  const uint32_t top = sign << 31;
  if (L.ieee && exponent == kExponent)
    return std::bit_cast<float>(top | 0x7f800000u | (mantissa << (23 - L.mantissa_bits)));
  if (!L.ieee && exponent == kExponent && mantissa == kMantissa) return std::bit_cast<float>(top | 0x7fc00000u);
  if (exponent == 0) {
    // Subnormals of every narrow type are normal in f32, so the product is exact.
    const float magnitude =
        static_cast<float>(mantissa) * std::bit_cast<float>((127u - kBias + 1u - L.mantissa_bits) << 23);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(top | ((exponent + 127 - kBias) << 23) | (mantissa << (23 - L.mantissa_bits)));
}

template <Layout L>
uint32_t narrow(float value) {
  constexpr int kBias = (1 << (L.exponent_bits - 1)) - 1;
  constexpr uint32_t kMantissa = (1u << L.mantissa_bits) - 1, kExponent = (1u << L.exponent_bits) - 1;
  constexpr uint32_t kInfinity = kExponent << L.mantissa_bits,
                     kNan = L.ieee ? kInfinity | (1u << (L.mantissa_bits - 1)) : kInfinity | kMantissa;
  constexpr uint32_t kLargest = L.ieee ? kInfinity - 1 : kNan - 1;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 31) << (L.exponent_bits + L.mantissa_bits);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    // A quiet NaN keeps the bits of its payload that fit.
    return sign | kNan | (L.ieee ? (magnitude >> (23 - L.mantissa_bits)) & kMantissa : 0);
  }
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;
  uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  // Below the smallest normal the significand moves right and the exponent field stays 0; the carry of rounding enters
  // it.
  int shift = 23 - L.mantissa_bits;
  uint32_t field = 0;
  if (exponent <= 0) {
    shift += 1 - exponent;
  } else {
    field = static_cast<uint32_t>(exponent - 1) << L.mantissa_bits;  // the hidden bit adds the missing 1
  }
  if (shift > 25) return sign;  // below half of the smallest subnormal
  const uint32_t half = 1u << (shift - 1), rest = significand & ((1u << shift) - 1);
  significand >>= shift;
  if (rest > half || (rest == half && (significand & 1))) ++significand;
  const uint32_t result = field + significand;
  // IEEE types overflow to infinity. f8e4m3 has none; the OCP specification's non-saturating conversion gives NaN.
  if (result > kLargest) return sign | (L.ieee ? kInfinity : kNan);
  return sign | result;
}

}  // namespace

const DTypeInfo& dtype_info(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

float f16_to_f32(uint16_t bits) { return widen<kF16>(bits); }
uint16_t f32_to_f16(float value) { return static_cast<uint16_t>(narrow<kF16>(value)); }
float f8e4m3_to_f32(uint8_t bits) { return widen<kF8E4M3>(bits); }
uint8_t f32_to_f8e4m3(float value) { return static_cast<uint8_t>(narrow<kF8E4M3>(value)); }
float f8e5m2_to_f32(uint8_t bits) { return widen<kF8E5M2>(bits); }
uint8_t f32_to_f8e5m2(float value) { return static_cast<uint8_t>(narrow<kF8E5M2>(value)); }

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

}  // namespace tern
