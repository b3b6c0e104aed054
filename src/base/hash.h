// 128-bit content hash for cache keys and kernel identity. Not cryptographic.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tern {

struct Hash {
  uint64_t hi = 0, lo = 0;
  auto operator<=>(const Hash&) const = default;
  std::string hex() const;  // 32 lower-case digits
};

// Feeds values into a hash; the order of calls matters. Strings and blobs are length-prefixed.
class Hasher {
 public:
  Hasher& bytes(std::span<const std::byte> data);
  Hasher& text(std::string_view s);
  Hasher& u64(uint64_t v);
  Hasher& i64(int64_t v) { return u64(static_cast<uint64_t>(v)); }
  Hasher& f64(double v);
  Hash done() const;

 private:
  uint64_t a_ = 0x9e3779b97f4a7c15ull, b_ = 0xc2b2ae3d27d4eb4full, n_ = 0;
};

}  // namespace tern
