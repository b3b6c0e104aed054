// Bytes that can be read at an offset: a file or a piece of memory. Parsers read through this, so that a file which
// changes or shrinks under them gives an error and never a fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tern/result.h"

namespace tern {

// Thread-safe for reading.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Fills out from `at`; an error where the range is not there.
  virtual Status read(uint64_t at, std::span<std::byte> out) const = 0;
};

// Looks at memory that the caller keeps alive.
class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Status read(uint64_t at, std::span<std::byte> out) const override {
    if (at > bytes_.size() || out.size() > bytes_.size() - at) return make_error(Code::io, "read past the end");
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + at, out.size());
    return ok();
  }

 private:
  std::span<const std::byte> bytes_;
};

// Unaligned little-endian load; hosts are little-endian (DESIGN).
template <class T>
T load_le(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace tern
