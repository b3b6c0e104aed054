// Keys and values that describe a model: what a model file says about itself, whatever its container.
//
// The key names are GGUF's ("tokenizer.ggml.tokens", "llama.block_count"); another importer translates to them.
// Consumers (the tokenizer, the model families) read through this class and never see a container's own value type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tern/result.h"

namespace tern {

// Thread-safe for reading. An absent key is Code::not_found, a value of another type or out of the asked range is
// Code::malformed; both texts name the key, the second also what was found ("tokenizer.ggml.scores is an array of i8,
// wants floats").
class Metadata {
 public:
  virtual ~Metadata() = default;
  virtual bool has(std::string_view key) const = 0;
  virtual std::vector<std::string> keys() const = 0;  // in the file's order

  // Bytes as stored: not necessarily UTF-8.
  virtual Result<std::string> string(std::string_view key) const = 0;
  // Any stored integer type; the value must fit. A bool or a float is a mismatch.
  virtual Result<uint64_t> u64(std::string_view key) const = 0;
  virtual Result<int64_t> i64(std::string_view key) const = 0;
  // f32 or f64.
  virtual Result<double> f64(std::string_view key) const = 0;
  virtual Result<bool> boolean(std::string_view key) const = 0;

  // Arrays of one dimension. ints takes any integer element type, floats f32 or f64; nothing is converted silently.
  virtual Result<std::vector<std::string>> strings(std::string_view key) const = 0;
  virtual Result<std::vector<int64_t>> ints(std::string_view key) const = 0;
  virtual Result<std::vector<float>> floats(std::string_view key) const = 0;
};

// The value of an optional key: `fallback` where the key is absent, an error where it is there with the wrong type.
inline Result<std::string> string_or(const Metadata& meta, std::string_view key, std::string fallback) {
  return meta.has(key) ? meta.string(key) : Result<std::string>(std::move(fallback));
}
inline Result<uint64_t> u64_or(const Metadata& meta, std::string_view key, uint64_t fallback) {
  return meta.has(key) ? meta.u64(key) : Result<uint64_t>(fallback);
}
inline Result<double> f64_or(const Metadata& meta, std::string_view key, double fallback) {
  return meta.has(key) ? meta.f64(key) : Result<double>(fallback);
}
inline Result<bool> boolean_or(const Metadata& meta, std::string_view key, bool fallback) {
  return meta.has(key) ? meta.boolean(key) : Result<bool>(fallback);
}

}  // namespace tern
