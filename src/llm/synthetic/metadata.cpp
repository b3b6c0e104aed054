#include "llm/synthetic/metadata.h"

namespace tern::llm {
namespace {

// The type as listings write it, the number of elements and the text of each kind of value.
struct Describe {
  size_t max_text;
  ListedKey operator()(const std::string& v) const { return {{}, "string", 1, v.substr(0, max_text)}; }
  ListedKey operator()(uint64_t v) const { return {{}, "u64", 1, std::to_string(v)}; }
  ListedKey operator()(double v) const { return {{}, "f64", 1, std::to_string(v)}; }
  ListedKey operator()(bool v) const { return {{}, "bool", 1, v ? "true" : "false"}; }
  ListedKey operator()(const std::vector<std::string>& v) const {
    return {{}, "string[]", v.size(), "[" + std::to_string(v.size()) + " texts]"};
  }
  ListedKey operator()(const std::vector<int64_t>& v) const {
    return {{}, "i64[]", v.size(), "[" + std::to_string(v.size()) + " numbers]"};
  }
};

}  // namespace

const MemoryMetadata::Value* MemoryMetadata::entry(std::string_view key) const {
  for (const auto& [name, value] : entries_) {
    if (name == key) return &value;
  }
  return nullptr;
}

template <class T>
Result<T> MemoryMetadata::get(std::string_view key, const char* wants) const {
  const Value* value = entry(key);
  if (value == nullptr)
    return make_error(Code::not_found, "the key " + std::string(key) + " is missing", std::string(key));
  if (const T* v = std::get_if<T>(value)) return *v;
  return make_error(Code::malformed, std::string(key) + " has another type, wants " + wants, std::string(key));
}

std::vector<std::string> MemoryMetadata::keys() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : entries_) out.push_back(name);
  return out;
}
Result<std::string> MemoryMetadata::string(std::string_view key) const { return get<std::string>(key, "a string"); }
Result<uint64_t> MemoryMetadata::u64(std::string_view key) const { return get<uint64_t>(key, "an integer"); }
Result<int64_t> MemoryMetadata::i64(std::string_view key) const {
  TERN_TRY(const uint64_t value, u64(key));
  if (value > static_cast<uint64_t>(INT64_MAX))
    return make_error(Code::malformed, std::string(key) + " does not fit a signed 64-bit integer", std::string(key));
  return static_cast<int64_t>(value);
}
Result<double> MemoryMetadata::f64(std::string_view key) const { return get<double>(key, "a float"); }
Result<bool> MemoryMetadata::boolean(std::string_view key) const { return get<bool>(key, "a bool"); }
Result<std::vector<std::string>> MemoryMetadata::strings(std::string_view key) const {
  return get<std::vector<std::string>>(key, "strings");
}
Result<std::vector<int64_t>> MemoryMetadata::ints(std::string_view key) const {
  return get<std::vector<int64_t>>(key, "integers");
}
Result<std::vector<float>> MemoryMetadata::floats(std::string_view key) const {
  if (entry(key) == nullptr)
    return make_error(Code::not_found, "the key " + std::string(key) + " is missing", std::string(key));
  return make_error(Code::malformed, std::string(key) + " has another type, wants floats", std::string(key));
}

std::vector<ListedKey> MemoryMetadata::list(size_t max_text) const {
  std::vector<ListedKey> out;
  for (const auto& [name, value] : entries_) {
    out.push_back(std::visit(Describe{max_text}, value));
    out.back().name = name;
  }
  return out;
}

}  // namespace tern::llm
