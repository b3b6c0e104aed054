#include "program/layout.h"

namespace tern {
namespace {

constexpr const LayoutDef* kLayouts[] = {
#define TERN_LAYOUT(def) &def,
#include "program/layouts/layout_list.inc"
#undef TERN_LAYOUT
};

}  // namespace

std::span<const LayoutDef* const> all_layouts() { return kLayouts; }

const LayoutDef* layout_by_name(std::string_view name) {
  for (const LayoutDef* def : kLayouts) {
    if (def->name == name) return def;
  }
  return nullptr;
}

}  // namespace tern
