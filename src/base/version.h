// tern's version, from the file VERSION. Part of every cache key.
#pragma once

#include <string_view>

namespace tern {

std::string_view version();   // "0.1.0"
std::string_view compiler();  // "GNU 12.2.0": what built this

}  // namespace tern
