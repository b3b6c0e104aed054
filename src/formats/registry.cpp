#include <array>

#include "tern/format.h"

namespace tern {

#define TERN_FORMAT(name) extern const Format kFormat_##name;
#include "formats/format_list.inc"
#undef TERN_FORMAT

std::span<const Format* const> all_formats() {
  static constexpr auto kAll = std::to_array<const Format*>({
#define TERN_FORMAT(name) &kFormat_##name,
#include "formats/format_list.inc"
#undef TERN_FORMAT
  });
  return kAll;
}

const Format* format_by_name(std::string_view name) {
  for (const Format* format : all_formats())
    if (format->name == name) return format;
  return nullptr;
}

const Format* format_by_file_id(std::string_view container, uint32_t id) {
  for (const Format* format : all_formats())
    for (const FileId& file : format->ids)
      if (file.id == id && file.container == container) return format;
  return nullptr;
}

const Format* plain_format(DType dtype) {
  const Format* format = format_by_name(dtype_name(dtype));
  return format != nullptr && format->cls == CodeClass::flt ? format : nullptr;
}

}  // namespace tern
