#pragma once

#include "llm/chat/lib/library.h"

namespace tern::jinja {
const Method* find_string_method(std::string_view name);
}  // namespace tern::jinja
