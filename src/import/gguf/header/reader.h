// A cursor over the front of a file. The bytes are copied into memory of our own in growing steps, so that nothing that
// happens to the file later can reach what was parsed, and no size in the file decides how much is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "import/gguf/header/header.h"

namespace tern::gguf {

class HeaderReader {
 public:
  HeaderReader(const ByteSource& file, uint64_t limit) : file_(file), size_(file.size()), limit_(limit) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return size_ - position_; }
  // Who is being read, for errors: the header itself, a thing by its number ("key 3") until its name is known, then by
  // name.
  void set_owner(std::string_view kind, uint64_t at) {
    owner_ = where_ = kind;
    at_ = at;
  }
  void set_owner(std::string_view kind, uint64_t index, uint64_t at) {
    set_owner(std::string(kind) + " " + std::to_string(index), at);
  }
  void set_owner(std::string_view kind, std::string_view name, uint64_t at) {
    set_owner(std::string(kind) + " " + std::string(name), at);
    where_ = name;
  }

  Error error(Code code, std::string_view what) const {
    return make_error(code, owner_ + ": " + std::string(what), place(where_, at_));
  }

  // Makes sure that `bytes` more lie in memory.
  Status need(uint64_t bytes, std::string_view what) {
    if (bytes > remaining())
      return error(Code::malformed, std::string(what) + " runs past the end of the file: " + std::to_string(bytes) +
                                        " bytes at offset " + std::to_string(position_) + ", the file has " +
                                        std::to_string(size_));
    const uint64_t end = position_ + bytes;
    if (end <= buffer_.size()) return ok();
    if (end > limit_)
      return error(Code::limit, "the header is larger than the limit of " + std::to_string(limit_) + " bytes");
    const uint64_t have = buffer_.size();
    const uint64_t want = std::min({std::max({end, 2 * have, kStep}), size_, limit_});
    buffer_.resize(want);
    return file_.read(have, std::span(buffer_).subspan(have));
  }

  template <class T>
  Result<T> get(std::string_view what) {
    TERN_OK(need(sizeof(T), what));
    const T value = load_le<T>(buffer_.data() + position_);
    position_ += sizeof(T);
    return value;
  }

  // The next `bytes`, stepped over; valid until the next call that reads.
  Result<std::string_view> take(uint64_t bytes, std::string_view what) {
    TERN_OK(need(bytes, what));
    const std::string_view text(reinterpret_cast<const char*>(buffer_.data()) + position_, static_cast<size_t>(bytes));
    position_ += bytes;
    return text;
  }

  // Everything read so far; the reader is empty afterwards.
  std::vector<std::byte> release() {
    buffer_.resize(position_);
    buffer_.shrink_to_fit();
    return std::move(buffer_);
  }

 private:
  static constexpr uint64_t kStep = 256u << 10;
  const ByteSource& file_;
  uint64_t size_, limit_;
  uint64_t position_ = 0;
  std::vector<std::byte> buffer_;
  std::string owner_, where_;
  uint64_t at_ = 0;
};

}  // namespace tern::gguf
