// What the format files share: finding a block, halves in bytes, and checks of values to be encoded.
#pragma once

#include <algorithm>
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

// `bits` bits from `shift` on of each of 32 bytes, as codes.
inline void take_bits32(const std::byte* packed, int shift, int bits, uint8_t* codes) {
  const uint64_t mask = ((uint64_t{1} << bits) - 1) * 0x0101010101010101ULL;
  uint64_t word[4];
  std::memcpy(word, packed, sizeof(word));
  for (uint64_t& w : word) w = w >> shift & mask;
  std::memcpy(codes, word, sizeof(word));
}
// The same, put above the `above` low bits that codes have already.
inline void or_bits32(const std::byte* packed, int shift, int bits, int above, uint8_t* codes) {
  uint64_t high[4], low[4];
  take_bits32(packed, shift, bits, reinterpret_cast<uint8_t*>(high));
  std::memcpy(low, codes, sizeof(low));
  for (int i = 0; i < 4; ++i) low[i] |= high[i] << above;
  std::memcpy(codes, low, sizeof(low));
}
// 32 bytes: 32 codes in the low nibbles, then 32 in the high ones.
inline void split_nibbles32(const std::byte* packed, uint8_t* codes) {
  take_bits32(packed, 0, 4, codes);
  take_bits32(packed, 4, 4, codes + 32);
}
inline void join_nibbles32(const uint8_t* codes, std::byte* out) {
  for (int l = 0; l < 32; ++l)
    out[l] = static_cast<std::byte>((codes[l] & 15) | static_cast<uint8_t>(codes[l + 32] << 4));
}

// Ones where bits of `bits` stand, byte by byte: bit i in bit 0 of byte i.
inline uint64_t spread_bits(uint32_t bits) {
  const uint64_t each = (uint64_t{bits & 0xff} * 0x0101010101010101ULL) & 0x8040201008040201ULL;
  return (each + 0x7f7f7f7f7f7f7f7fULL) >> 7 & 0x0101010101010101ULL;  // no byte carries: each is a power of two or 0
}

// Nibbles as split_nibbles reads them, and a fifth bit for each code: bit j of high for code j.
inline void split_fives(const std::byte* packed, uint32_t high, uint8_t* codes) {
  split_nibbles(packed, codes);
  for (int i = 0; i < 4; ++i) {
    uint64_t word;
    std::memcpy(&word, codes + 8 * i, 8);
    word |= spread_bits(high >> (8 * i)) << 4;
    std::memcpy(codes + 8 * i, &word, 8);
  }
}
// The other way: the fifth bits in four bytes, then the nibbles.
inline void join_fives(const uint8_t* codes, std::byte* out) {
  uint32_t high = 0;
  for (uint32_t j = 0; j < 32; ++j) high |= static_cast<uint32_t>(codes[j] >> 4) << j;
  std::memcpy(out, &high, sizeof(high));
  for (uint32_t j = 0; j < 16; ++j)
    out[4 + j] = static_cast<std::byte>((codes[j] & 15) | static_cast<uint8_t>(codes[j + 16] << 4));
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

inline float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (float v : values) largest = std::max(largest, std::abs(v));
  return largest;
}
// -d, 0, +d as 0, 1, 2; halves away from zero.
inline uint32_t ternary_code(float value, float d) {
  return static_cast<uint32_t>((d != 0 ? static_cast<int>(std::round(value / d)) : 0) + 1);
}

// One block function, over the block asked for and over consecutive blocks.
template <auto kDecodeBlock, uint32_t kBytes>
void decode_one(const Planes& planes, int64_t block, float* out) {
  kDecodeBlock(block_at(planes, block, kBytes), out);
}
template <auto kDecodeBlock, uint32_t kBytes, uint32_t kElements>
void decode_each(const Planes& planes, int64_t block, int64_t blocks, float* out) {
  const std::byte* at = block_at(planes, block, kBytes);
  for (int64_t b = 0; b < blocks; ++b, at += kBytes, out += kElements) kDecodeBlock(at, out);
}

}  // namespace tern::formats
