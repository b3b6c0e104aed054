// Block formats of quantised weights, as data. One file per format in src/formats; kernels know code classes, never
// names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tern/dtype.h"
#include "tern/result.h"

namespace tern {

enum class CodeClass : uint8_t {
  flt,         // plain floats: value = code; a TensorType names these by dtype alone, format stays null
  packed,      // (step * code - zero) * scale: sign, ternary and 2..8-bit integers
  packed_min,  // code * scale + min
  lookup,      // table[code] * scale
};

// Up to four planes of one value. Block-interleaved: p[0] holds whole blocks. Planar: codes, scales, mins or zeros,
// outer scale.
struct Planes {
  std::array<std::span<const std::byte>, 4> p;
};

// How a file writes the format: {"gguf", 2}, {"safetensors", ...}.
struct FileId {
  std::string_view container;
  uint32_t id;
};

// Where a format writes what blocks hold, each plane in order of the values. Null pointers only for planes that the
// format's class does not have.
struct SplitPlanes {
  uint8_t* codes;       // one a value, unsigned
  float* scales;        // one a group; with two levels the whole numbers that multiply outer_scales
  float* mins;          // packed_min: likewise
  float* outer_scales;  // two levels: one a block
  float* outer_mins;    // two levels, packed_min: one a block; what is added is mins * outer_mins
};

struct Format {
  std::string_view name;          // "q4_1"; lower case, as printed in IR and on the command line
  std::array<uint32_t, 2> block;  // {rows, columns}: extent of a block; almost always {1, 32}
  uint32_t bytes;                 // of a block
  CodeClass cls;
  uint8_t bits;                   // of a code, up to 8
  int16_t zero;                   // packed: step * code that means 0 (codes are unsigned: q8_0 has 128)
  uint8_t step = 1;               // packed: 2 where codes 0 and 1 mean -1 and +1 (zero is 1)
  uint16_t group;                 // elements that share a scale
  DType scale;                    // storage type of scales and mins, or of outer ones, in packed layouts: f16 or f32
  uint8_t sub_bits = 0;           // two-level scales: 8 where scales (and mins) are whole numbers -128 .. 127 times the
                                  // block's outer one, 4 where both are 0 .. 15; 0: one level
  std::span<const int8_t> table;  // lookup: value of each code
  // The exact f32 values of block `block` (row-major over the whole value); out has block[0] * block[1] elements.
  void (*decode)(const Planes& planes, int64_t block, float* out);
  // The same for `blocks` consecutive blocks, at the speed of memory.
  void (*decode_run)(const Planes& planes, int64_t block, int64_t blocks, float* out);
  // Codes, scales and mins of `blocks` consecutive blocks, at the speed of memory: all that packing reads. Scales are
  // exact: f32 holds every product of what files store. Null for class flt: packing copies the elements.
  void (*split)(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out);
  // Null where tern does not write the format. values: one block; importance: one weight a value, or null; formats
  // whose rounding follows a fixed rule ignore it. Block formats refuse values that are not finite or need a scale
  // beyond f16.
  Status (*encode)(std::span<const float> values, const float* importance, std::byte* out);
  std::span<const FileId> ids;

  uint32_t elements() const { return block[0] * block[1]; }  // of a block
};

// Formats known to this build, in list order.
std::span<const Format* const> all_formats();
const Format* format_by_name(std::string_view name);
const Format* format_by_file_id(std::string_view container, uint32_t id);
// The row of a plain float dtype (f32, f16, bf16), so that all storage types can be read alike; null for other dtypes.
const Format* plain_format(DType dtype);

}  // namespace tern
