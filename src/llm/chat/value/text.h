// Python's text operations on UTF-8. Positions count code points; -1 is "from the end" only where said.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tern::jinja {

int32_t next_code(std::string_view text, size_t& at);  // well-formed text; moves at past the character
void append_code(std::string& out, int32_t code);      // surrogates and what is past U+10FFFF become U+FFFD
bool is_space(int32_t code);                           // as str.isspace
bool is_printable(int32_t code);                       // as str.isprintable
bool is_alpha(int32_t code);
bool is_digit(int32_t code);
bool is_upper(int32_t code);
bool is_lower(int32_t code);

int64_t code_count(std::string_view text);
size_t byte_of_code(std::string_view text, int64_t code);  // byte position of a code point; text.size() past the end
std::vector<std::string_view> characters(std::string_view text);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);  // str.title: every run of letters
std::string swapcase(std::string_view text);

enum class Side : uint8_t { left = 1, right = 2, both = 3 };
// Without chars: white space.
std::string_view strip(std::string_view text, std::optional<std::string_view> chars = {}, Side side = Side::both);
// Without separator: by runs of white space. limit < 0: all.
std::vector<std::string_view> split(std::string_view text, std::optional<std::string_view> separator, int64_t limit);
std::vector<std::string_view> rsplit(std::string_view text, std::optional<std::string_view> separator, int64_t limit);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);
// limit < 0: all.
std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t limit = -1);
int64_t count_of(std::string_view text, std::string_view part);  // not overlapping
std::string html_escape(std::string_view text);

}  // namespace tern::jinja
