// What the format files share: finding a block, halves in bytes, and checks of values to be encoded.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "tern/format.h"

namespace tern::formats {

inline const std::byte* block_at(const Planes& planes, int64_t block, uint32_t bytes) {
  return planes.p[0].data() + static_cast<size_t>(block) * bytes;
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Inline and without branches, so that whole tensors convert at vector speed; equal to f16_to_f32 for all 65,536 codes
// (tested). No subnormal f32 takes part: threads may run with subnormals flushed to zero.
inline float widen_half(uint16_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t is_special = 0u - static_cast<uint32_t>(magnitude > 0x7bffu),
                 is_small = 0u - static_cast<uint32_t>(magnitude < 0x0400u);
  const uint32_t normal =
      (magnitude << 13) + 0x38000000u + (is_special & 0x38000000u);  // infinity and NaN get the top exponent
  const uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t bits = (normal & ~is_small) | (subnormal & is_small);
  return std::bit_cast<float>(bits | (static_cast<uint32_t>(half & 0x8000u) << 16));
}
inline float load_half(const std::byte* at) { return widen_half(load<uint16_t>(at)); }

inline void store_half(std::byte* at, float value) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(at, &bits, sizeof(bits));
}

// Splits 16 bytes into 32 codes: the low nibbles first, then the high ones. Words instead of bytes, since char pointers
// alias everything and would keep a compiler from vectorising.
inline void split_nibbles(const std::byte* packed, uint8_t* codes) {
  constexpr uint64_t kLow = 0x0f0f0f0f0f0f0f0fULL;
  uint64_t word[2];
  std::memcpy(word, packed, sizeof(word));
  const uint64_t out[4] = {word[0] & kLow, word[1] & kLow, (word[0] >> 4) & kLow, (word[1] >> 4) & kLow};
  std::memcpy(codes, out, sizeof(out));
}

inline Status check_block(std::string_view format, std::span<const float> values, size_t want) {
  if (values.size() != want)
    return make_error(Code::invalid, std::string(format) + " encodes blocks of " + std::to_string(want) +
                                         " values, got " + std::to_string(values.size()));
  for (size_t i = 0; i < want; ++i)
    if (!std::isfinite(values[i]))
      return make_error(Code::invalid,
                        std::string(format) + " cannot hold value " + std::to_string(i) + " of the block: not finite");
  return ok();
}

inline Status check_scale(std::string_view format, float scale) {
  if (std::abs(scale) < 65520.0f) return ok();  // what still rounds to the largest half
  return make_error(Code::invalid, std::string(format) + " cannot hold a block whose scale is beyond f16");
}

// Runs one block function over consecutive blocks.
template <auto kDecodeBlock, uint32_t kBytes, uint32_t kElements>
void decode_each(const Planes& planes, int64_t block, int64_t blocks, float* out) {
  const std::byte* at = block_at(planes, block, kBytes);
  for (int64_t b = 0; b < blocks; ++b, at += kBytes, out += kElements) kDecodeBlock(at, out);
}

}  // namespace tern::formats
