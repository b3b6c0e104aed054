// Writes GGUF bytes for tests, field by field, so that any of them can be wrong.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "unit/temp_folder.h"

namespace tern {

class Bytes {
 public:
  template <class T>
  Bytes& put(T value) {
    const auto* p = reinterpret_cast<const char*>(&value);
    data_.append(p, sizeof(T));
    return *this;
  }
  Bytes& raw(std::string_view text) {
    data_ += text;
    return *this;
  }
  Bytes& string(std::string_view text) { return put<uint64_t>(text.size()).raw(text); }
  Bytes& pad(size_t alignment) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  const std::string& data() const { return data_; }

 private:
  std::string data_;
};

struct GgufBuilder {
  uint32_t version = 3;
  size_t alignment = 32;
  uint64_t keys = 0, tensors = 0;
  Bytes key_bytes, table, payload;

  template <class T>
  GgufBuilder& scalar(std::string_view key, uint32_t type, T value) {
    ++keys;
    key_bytes.string(key).put(type).put(value);
    return *this;
  }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    ++keys;
    key_bytes.string(key).put<uint32_t>(8).string(value);
    return *this;
  }
  template <class T>
  GgufBuilder& array(std::string_view key, uint32_t element, const std::vector<T>& values) {
    ++keys;
    key_bytes.string(key).put<uint32_t>(9).put(element).put<uint64_t>(values.size());
    for (const T& value : values) {
      if constexpr (std::is_same_v<T, std::string>)
        key_bytes.string(value);
      else
        key_bytes.put(value);
    }
    return *this;
  }
  // ne in the file's order: the fastest axis first.
  GgufBuilder& tensor(std::string_view name, const std::vector<uint64_t>& ne, uint32_t type, std::string_view bytes) {
    ++tensors;
    table.string(name).put<uint32_t>(static_cast<uint32_t>(ne.size()));
    for (uint64_t n : ne) table.put(n);
    payload.pad(alignment);
    table.put(type).put<uint64_t>(payload.data().size());
    payload.raw(bytes);
    return *this;
  }
  std::string build() const {
    Bytes out;
    out.raw("GGUF").put(version).put(tensors).put(keys).raw(key_bytes.data()).raw(table.data());
    if (!payload.data().empty()) out.pad(alignment);
    return out.raw(payload.data()).data();
  }
};

}  // namespace tern
