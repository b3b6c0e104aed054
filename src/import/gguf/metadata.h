// GGUF keys as tern::Metadata and as text for people and JSON.
#pragma once

#include <string>
#include <vector>

#include "import/gguf/header/header.h"
#include "tern/import/metadata.h"

namespace tern::gguf {

// Looks at a header that outlives it.
class HeaderMetadata final : public Metadata {
 public:
  explicit HeaderMetadata(const Header& header) : header_(header) {}
  bool has(std::string_view key) const override { return header_.find(key) != nullptr; }
  std::vector<std::string> keys() const override;
  Result<std::string> string(std::string_view key) const override;
  Result<uint64_t> u64(std::string_view key) const override;
  Result<int64_t> i64(std::string_view key) const override;
  Result<double> f64(std::string_view key) const override;
  Result<bool> boolean(std::string_view key) const override;
  Result<std::vector<std::string>> strings(std::string_view key) const override;
  Result<std::vector<int64_t>> ints(std::string_view key) const override;
  Result<std::vector<float>> floats(std::string_view key) const override;

 private:
  const Header& header_;
};

std::string type_text(const Value& value);  // "u32", "string[]", "array[]"
// Valid UTF-8 whatever the file holds, cut to about max_text bytes.
std::string value_text(const Header& header, const Value& value, size_t max_text);

}  // namespace tern::gguf
