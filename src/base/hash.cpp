#include "base/hash.h"

#include <bit>
#include <cstring>

namespace tern {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"): a bijection
// of 64 bits.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

uint64_t little_endian(const std::byte* p, size_t n) {
  uint64_t v = 0;
  for (size_t i = 0; i < n; ++i) v |= static_cast<uint64_t>(p[i]) << (8 * i);
  return v;
}

}  // namespace

Hasher& Hasher::u64(uint64_t v) {
  // Two lanes with unlike multipliers and rotations, each fed by the other; one step is a bijection of (a, b) for every
  // v.
  a_ = std::rotl(a_ ^ mix(v + n_), 27) * 0x9fb21c651e98df25ull + b_;
  b_ = std::rotl(b_ + v, 31) * 0xd6e8feb86659fd93ull ^ a_;
  ++n_;
  return *this;
}

Hasher& Hasher::bytes(std::span<const std::byte> data) {
  u64(data.size());
  size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    uint64_t word;
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(&word, data.data() + i, 8);
    } else {
      word = little_endian(data.data() + i, 8);
    }
    u64(word);
  }
  if (i < data.size()) u64(little_endian(data.data() + i, data.size() - i));
  return *this;
}

Hasher& Hasher::text(std::string_view s) { return bytes(std::as_bytes(std::span(s.data(), s.size()))); }

// -0.0 and 0.0 differ, and so do NaNs of different bits: a hash of what is stored, not of what compares equal.
Hasher& Hasher::f64(double v) { return u64(std::bit_cast<uint64_t>(v)); }

Hash Hasher::done() const {
  uint64_t x = a_, y = b_;
  for (int round = 0; round < 3; ++round) {
    x = mix(x + n_ + std::rotl(y, 17));
    y = mix(y + std::rotl(x, 41));
  }
  return {x, y};
}

std::string Hash::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string s(32, '0');
  for (int i = 0; i < 16; ++i) {
    s[static_cast<size_t>(i)] = kDigits[(hi >> (60 - 4 * i)) & 15];
    s[static_cast<size_t>(16 + i)] = kDigits[(lo >> (60 - 4 * i)) & 15];
  }
  return s;
}

}  // namespace tern
