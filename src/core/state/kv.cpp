#include "tern/state/kv.h"

#include <string>

namespace tern {
namespace {

struct Row {
  std::string_view name;
  DType dtype;  // of the state's elements
  int bits, multiple;
};
constexpr Row kRows[] = {{"f32", DType::f32, 32, 1},
                         {"f16", DType::f16, 16, 2},
                         {"bf16", DType::bf16, 16, 2},
                         {"q8", DType::u32, 8, 32},
                         {"q4", DType::u32, 4, 32}};
const Row& row(KvKind kind) { return kRows[static_cast<size_t>(kind)]; }

}  // namespace

std::string_view kv_kind_name(KvKind kind) { return row(kind).name; }

std::optional<KvKind> kv_kind_by_name(std::string_view name) {
  for (const KvKind kind : kKvKinds) {
    if (kv_kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

int kv_bits(KvKind kind) { return row(kind).bits; }

Result<TensorType> kv_state_type(KvKind kind, bool keys, Dim pages, int64_t heads, int64_t size, int64_t page) {
  const Row& r = row(kind);
  if (size < 1 || size % r.multiple != 0)
    return make_error(Code::unsupported, std::string(r.name) + " KV wants head sizes that are multiples of " +
                                             std::to_string(r.multiple) + ", this one is " + std::to_string(size));
  TensorType type{r.dtype, {pages, heads}, nullptr};
  const int64_t together = 32 / r.bits;  // components that fill a word
  const auto add = [&](std::initializer_list<int64_t> axes) {
    type.shape.insert(type.shape.end(), axes.begin(), axes.end());
  };
  if (is_quantised(kind)) {
    const int64_t words = kv_words(kind, size);
    keys ? add({words, page}) : add({words * page});
  } else {
    keys ? add({size / together, page, together}) : add({page, size});
  }
  return type;
}

}  // namespace tern
