// UTF-8 that came from outside: checks, and forms that are safe to print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tern {

// Length in bytes of the well-formed sequence at the start of text (1..4), or 0: no overlong forms, no surrogates,
// nothing above U+10FFFF (Unicode 15, table 3-7).
size_t utf8_sequence(std::string_view text);
bool is_utf8(std::string_view text);
// Every maximal ill-formed piece becomes U+FFFD: always valid UTF-8, so a JSON writer may take it.
std::string utf8_lossy(std::string_view text);
// utf8_lossy, with control characters (also DEL and C1), quotes and backslashes escaped: safe on a terminal and inside
// quotes of an error message.
// Cut to about max_bytes with "..." where longer.
std::string printable(std::string_view text, size_t max_bytes = 96);

}  // namespace tern
