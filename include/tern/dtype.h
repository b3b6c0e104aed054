// Element types. One row per type in src/core/dtypes.inc; everything else asks the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tern {

enum class DType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8e4m3,
  f8e5m2,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  c64,
  c128
};
inline constexpr int kDTypeCount = 17;

enum class DTypeKind : uint8_t { floating, signed_int, unsigned_int, boolean, complex };

struct DTypeInfo {
  std::string_view name;  // as printed in IR and JSON: "f32", "bool", "c64"
  uint8_t bytes;          // storage of one element
  DTypeKind kind;
  uint8_t mantissa_bits;   // explicit bits of the significand for floats (f32: 23), value bits for integers
  double lowest, highest;  // finite range of a real type (of one component for complex types)
};

const DTypeInfo& dtype_info(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

inline std::string_view dtype_name(DType d) { return dtype_info(d).name; }
inline uint32_t dtype_bytes(DType d) { return dtype_info(d).bytes; }
inline bool is_float(DType d) { return dtype_info(d).kind == DTypeKind::floating; }
inline bool is_int(DType d) {
  return dtype_info(d).kind == DTypeKind::signed_int || dtype_info(d).kind == DTypeKind::unsigned_int;
}
inline bool is_complex(DType d) { return dtype_info(d).kind == DTypeKind::complex; }

// Exact conversions of single values between storage bits and f32, round to nearest even, as IEEE 754 and the OCP FP8
// specification define them.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);
float f8e4m3_to_f32(uint8_t bits);
uint8_t f32_to_f8e4m3(float value);
float f8e5m2_to_f32(uint8_t bits);
uint8_t f32_to_f8e5m2(float value);

}  // namespace tern
