// Fuzz target of the GGUF header: whatever the bytes are, parsing ends with a header that keeps its promises, or an
// error.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/utf8.h"
#include "import/gguf/header/header.h"
#include "import/gguf/metadata.h"

namespace {

void want(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void check_tensors(const tern::gguf::Header& header) {
  std::vector<std::pair<uint64_t, uint64_t>> extents;
  for (const auto& tensor : header.tensors) {
    want(tensor.type != nullptr, "a tensor has a type");
    want(tensor.offset % header.alignment == 0 && tensor.offset >= header.data_offset,
         "data is aligned and behind the header");
    want(tensor.bytes > 0 && tensor.offset <= header.file_bytes && tensor.bytes <= header.file_bytes - tensor.offset,
         "data lies in the file");
    want(!tensor.shape.empty() && tensor.shape.size() <= 4, "one to four dimensions");
    extents.emplace_back(tensor.offset, tensor.bytes);
  }
  std::sort(extents.begin(), extents.end());
  for (size_t i = 1; i < extents.size(); ++i)
    want(extents[i].first - extents[i - 1].first >= extents[i - 1].second, "extents do not overlap");
}

void check_keys(const tern::gguf::Header& header) {
  const tern::gguf::HeaderMetadata meta(header);
  for (const auto& key : header.keys) {
    want(header.find(key.name) == &key, "keys are found by name and unique");
    want(key.value.at + key.value.bytes <= header.bytes.size(), "values lie in the header");
    want(tern::is_utf8(tern::gguf::value_text(header, key.value, 200)), "text of values is UTF-8");
    (void)tern::gguf::type_text(key.value);
    const std::string_view name = key.name;
    // Each lookup that has the right type must end, the others must refuse.
    int answers = 0;
    answers += meta.string(name).ok();
    answers += meta.u64(name).ok() || meta.i64(name).ok();
    answers += meta.f64(name).ok();
    answers += meta.boolean(name).ok();
    answers += meta.strings(name).ok();
    answers += meta.ints(name).ok();
    answers += meta.floats(name).ok();
    want(answers <= 1, "a value has one type");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tern::MemoryBytes file(std::as_bytes(std::span(data, size)));
  const auto header = tern::gguf::parse_header(file, {.header_bytes = 1u << 20});
  if (!header) {
    want(tern::is_utf8(header.error().message()), "messages are UTF-8");
    want(tern::error_offset(header.error()).has_value(), "errors name an offset");
    want(*tern::error_offset(header.error()) <= size, "the offset lies in the file");
    return 0;
  }
  check_tensors(*header);
  check_keys(*header);
  return 0;
}
