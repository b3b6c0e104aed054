// The two type tables of GGUF: tensor types (types.inc) and value types of keys.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tern::gguf {

// One reading of a tensor type id. elements == 0: the size is not known (then it is not listable).
struct TensorTypeRow {
  uint32_t id;
  std::string_view name;
  uint32_t elements, bytes;  // of a block
  std::string_view whose;    // "" for upstream's
  bool listable;             // false: only known to be refused by name
};

// All readings of an id, in table order; empty where nobody is known to use it.
std::span<const TensorTypeRow> readings_of(uint32_t id);

// Value types, as stored. bytes == 0: string or array.
enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64, count_ };
struct ValueTypeRow {
  std::string_view name;
  uint8_t bytes;
};
inline constexpr ValueTypeRow kValueTypes[] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
                                               {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
                                               {"u64", 8}, {"i64", 8}, {"f64", 8}};
inline bool is_value_type(uint32_t type) { return type < static_cast<uint32_t>(ValueType::count_); }
inline const ValueTypeRow& value_type(ValueType type) { return kValueTypes[static_cast<uint32_t>(type)]; }

}  // namespace tern::gguf
