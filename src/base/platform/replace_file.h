// Files that others read meanwhile: whole or not there.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tern/result.h"

namespace tern {

// Writes the parts one after another into a new file beside `path` and gives it that name, so that readers find the old
// file or the whole new one; it keeps its permissions, and a link to it stays. What is no file (a pipe, a terminal, a
// device) is written to. Code::io names the file and the reason; nothing is left behind then. Threads and processes may
// replace one file at a time: the last one stands.
Status replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts);
Status replace_file(const std::string& path, std::string_view text);

}  // namespace tern
