// Which importer reads a file, and what all importers share.
#include <charconv>

#include "base/platform/within_memory.h"
#include "import/gguf/file.h"
#include "tern/import/model_file.h"

namespace tern {

// One container so far; the next one (safetensors, ONNX) is told by the first bytes.
Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& path, const FileLimits& limits) try {
  return open_gguf(path, limits);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

std::optional<uint64_t> error_offset(const Error& error) {
  constexpr std::string_view kMark = "@0x";
  const size_t mark = error.where.rfind(kMark);
  if (mark == std::string::npos) return std::nullopt;
  uint64_t value = 0;
  const char *first = error.where.data() + mark + kMark.size(), *last = error.where.data() + error.where.size();
  const auto parsed = std::from_chars(first, last, value, 16);
  return parsed.ec == std::errc() && parsed.ptr != first ? std::optional<uint64_t>(value) : std::nullopt;
}

}  // namespace tern
