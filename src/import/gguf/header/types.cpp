#include "import/gguf/header/types.h"

#include <algorithm>
#include <iterator>

namespace tern::gguf {
namespace {

constexpr TensorTypeRow kRows[] = {
#define TERN_GGUF_TYPE(id, name, elements, bytes, whose) {id, name, elements, bytes, whose, true},
#define TERN_GGUF_OTHER(id, name, elements, bytes, whose) {id, name, elements, bytes, whose, false},
#include "import/gguf/header/types.inc"
#undef TERN_GGUF_TYPE
#undef TERN_GGUF_OTHER
};
static_assert(std::is_sorted(std::begin(kRows), std::end(kRows),
                             [](const TensorTypeRow& a, const TensorTypeRow& b) { return a.id < b.id; }));

}  // namespace

std::span<const TensorTypeRow> readings_of(uint32_t id) {
  const auto* first =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const TensorTypeRow& row) { return row.id == id; });
  const auto* last = std::find_if(first, std::end(kRows), [&](const TensorTypeRow& row) { return row.id != id; });
  return {first, last};
}

}  // namespace tern::gguf
