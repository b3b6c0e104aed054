// What the K formats share: blocks of 256 values whose groups have small whole scales (and minima) that a half each per
// block multiplies. A format gives its split; decoding is the arithmetic on that: first the scale, then times the code,
// then the minimum, each rounded to f32.
#pragma once

#include <cstdint>
#include <span>

#include "formats/block.h"

namespace tern::formats {

constexpr uint32_t kSuper = 256;

// kSplit(block, out) writes one block: 256 codes, a scale (and min) a group, one outer scale (and min: negative, as it
// is added).
template <auto kSplit, uint32_t kBytes, uint32_t kGroup, bool kHasMin, int kZero>
struct SuperBlocks {
  static void split(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out) {
    const std::byte* at = block_at(planes, block, kBytes);
    for (int64_t b = 0; b < blocks; ++b, at += kBytes) {
      kSplit(at, out);
      out.codes += kSuper, out.scales += kSuper / kGroup, ++out.outer_scales;
      if constexpr (kHasMin) out.mins += kSuper / kGroup, ++out.outer_mins;
    }
  }
  static void decode_block(const std::byte* block, float* out) {
    uint8_t codes[kSuper];
    float scales[kSuper / kGroup], mins[kSuper / kGroup], d, dmin;
    kSplit(block, {codes, scales, mins, &d, &dmin});
    for (uint32_t g = 0; g < kSuper / kGroup; ++g) {
      const float scale = d * scales[g], min = kHasMin ? dmin * mins[g] : 0.0f;
      for (uint32_t j = g * kGroup; j < (g + 1) * kGroup; ++j) {
        const float product = scale * static_cast<float>(static_cast<int>(codes[j]) - kZero);
        out[j] = kHasMin ? product + min : product;
      }
    }
  }
  static constexpr auto decode = decode_one<decode_block, kBytes>;
  static constexpr auto decode_run = decode_each<decode_block, kBytes, kSuper>;
};

// The eight 6-bit scales and minima of q4_k and q5_k in twelve bytes.
void split_six_bits(const std::byte* packed, float* scales, float* mins);
void join_six_bits(const int* scales, const int* mins, std::byte* out);

// ---- encoders
// What a block is encoded to. Groups: 256 / group of them.
struct SuperCodes {
  float d = 0, dmin = 0;  // as halves hold them
  int scales[16], mins[16];
  uint8_t codes[kSuper];
};
// Searches value ~ d * scale * code - dmin * min, codes 0 .. levels, scales and mins 0 .. most.
SuperCodes search_with_min(std::span<const float> values, int group, int levels, int most);
// Searches value ~ d * scale * (code - zero), codes 0 .. 2 * zero - 1, scales -most - 1 .. most.
SuperCodes search_symmetric(std::span<const float> values, int group, int zero, int most);

// Stores the halves; refuses a block whose scale none can hold.
Status store_super(std::string_view format, const SuperCodes& codes, bool has_min, std::byte* d, std::byte* dmin);

}  // namespace tern::formats
