// Metadata held in memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tern/import/model_file.h"

namespace tern::llm {

class MemoryMetadata final : public Metadata {
 public:
  using Value = std::variant<std::string, uint64_t, double, bool, std::vector<std::string>, std::vector<int64_t>>;
  void set(std::string key, Value value) { entries_.emplace_back(std::move(key), std::move(value)); }

  bool has(std::string_view key) const override { return entry(key) != nullptr; }
  std::vector<std::string> keys() const override;
  Result<std::string> string(std::string_view key) const override;
  Result<uint64_t> u64(std::string_view key) const override;
  Result<int64_t> i64(std::string_view key) const override;
  Result<double> f64(std::string_view key) const override;
  Result<bool> boolean(std::string_view key) const override;
  Result<std::vector<std::string>> strings(std::string_view key) const override;
  Result<std::vector<int64_t>> ints(std::string_view key) const override;
  Result<std::vector<float>> floats(std::string_view key) const override;
  std::vector<ListedKey> list(size_t max_text) const;

 private:
  const Value* entry(std::string_view key) const;
  template <class T>
  Result<T> get(std::string_view key, const char* wants) const;

  std::vector<std::pair<std::string, Value>> entries_;
};

}  // namespace tern::llm
