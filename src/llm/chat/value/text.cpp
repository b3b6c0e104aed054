#include "llm/chat/value/text.h"

#include <utf8proc.h>

#include <algorithm>

namespace tern::jinja {
namespace {

int category(int32_t code) { return static_cast<int>(utf8proc_category(code)); }

std::string mapped(std::string_view text, int32_t (*map)(int32_t)) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) append_code(out, map(next_code(text, at)));
  return out;
}

bool is_cased(int32_t code) { return is_upper(code) || is_lower(code) || category(code) == UTF8PROC_CATEGORY_LT; }

bool is_line_end(int32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

// The byte where the last character of text begins.
size_t last_start(std::string_view text) {
  size_t i = text.size() - 1;
  while (i > 0 && (static_cast<uint8_t>(text[i]) & 0xC0) == 0x80) --i;
  return i;
}

}  // namespace

int32_t next_code(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) & 0x3F : 0; };
  const auto lead = static_cast<uint8_t>(text[at]);
  const size_t begin = at;
  if (lead < 0x80) {
    at += 1;
    return lead;
  }
  if (lead < 0xE0) {
    at = std::min(at + 2, text.size());
    return ((lead & 0x1F) << 6) | byte(begin + 1);
  }
  if (lead < 0xF0) {
    at = std::min(at + 3, text.size());
    return ((lead & 0x0F) << 12) | (byte(begin + 1) << 6) | byte(begin + 2);
  }
  at = std::min(at + 4, text.size());
  return ((lead & 0x07) << 18) | (byte(begin + 1) << 12) | (byte(begin + 2) << 6) | byte(begin + 3);
}

void append_code(std::string& out, int32_t code) {
  if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
  const auto put = [&](int32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xC0 | (code >> 6)), put(0x80 | (code & 0x3F));
  if (code < 0x10000) return put(0xE0 | (code >> 12)), put(0x80 | ((code >> 6) & 0x3F)), put(0x80 | (code & 0x3F));
  put(0xF0 | (code >> 18)), put(0x80 | ((code >> 12) & 0x3F)), put(0x80 | ((code >> 6) & 0x3F)),
      put(0x80 | (code & 0x3F));
}

bool is_space(int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(int32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    default: return true;
  }
}

bool is_alpha(int32_t c) {
  const int kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}
bool is_digit(int32_t c) { return category(c) == UTF8PROC_CATEGORY_ND || c == 0xB2 || c == 0xB3 || c == 0xB9; }
bool is_upper(int32_t c) { return utf8proc_isupper(c) != 0; }
bool is_lower(int32_t c) { return utf8proc_islower(c) != 0; }

int64_t code_count(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

size_t byte_of_code(std::string_view text, int64_t code) {
  size_t at = 0;
  while (code > 0 && at < text.size()) {
    next_code(text, at);
    --code;
  }
  return at;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    next_code(text, at);
    out.push_back(text.substr(begin, at - begin));
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const int32_t code = next_code(text, at);
    if (code == 0xDF)
      out += "SS";
    else
      append_code(out, utf8proc_toupper(code));
  }
  return out;
}
std::string lower(std::string_view text) { return mapped(text, utf8proc_tolower); }
std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  size_t at = 0;
  std::string out;
  append_code(out, utf8proc_totitle(next_code(text, at)));
  return out + lower(text.substr(at));
}
std::string title(std::string_view text) {
  std::string out;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const int32_t code = next_code(text, at);
    append_code(out, inside ? utf8proc_tolower(code) : utf8proc_totitle(code));
    inside = is_cased(code);
  }
  return out;
}
std::string swapcase(std::string_view text) {
  return mapped(text, [](int32_t c) { return is_upper(c) ? utf8proc_tolower(c) : utf8proc_toupper(c); });
}

std::string_view strip(std::string_view text, std::optional<std::string_view> chars, Side side) {
  const auto drops = [&](std::string_view character) {
    size_t at = 0;
    return chars ? chars->find(character) != std::string_view::npos : is_space(next_code(character, at));
  };
  const int sides = static_cast<int>(side);
  while (!text.empty() && (sides & 1) != 0) {
    size_t n = 0;
    next_code(text, n);
    if (!drops(text.substr(0, n))) break;
    text.remove_prefix(n);
  }
  while (!text.empty() && (sides & 2) != 0) {
    const size_t begin = last_start(text);
    if (!drops(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text, std::optional<std::string_view> separator, int64_t limit) {
  std::vector<std::string_view> out;
  if (separator) {
    for (size_t at = 0; limit != 0 && (at = text.find(*separator)) != std::string_view::npos; --limit) {
      out.push_back(text.substr(0, at));
      text.remove_prefix(at + separator->size());
    }
    out.push_back(text);
    return out;
  }
  text = strip(text, {}, Side::left);
  while (!text.empty()) {
    if (limit-- == 0) {
      out.push_back(strip(text, {}, Side::right));
      break;
    }
    size_t end = 0;
    while (end < text.size()) {
      size_t next = end;
      if (is_space(next_code(text, next))) break;
      end = next;
    }
    out.push_back(text.substr(0, end));
    text = strip(text.substr(end), {}, Side::left);
  }
  return out;
}

std::vector<std::string_view> rsplit(std::string_view text, std::optional<std::string_view> separator, int64_t limit) {
  std::vector<std::string_view> out;
  if (separator) {
    for (size_t at = 0; limit != 0 && (at = text.rfind(*separator)) != std::string_view::npos; --limit) {
      out.push_back(text.substr(at + separator->size()));
      text = text.substr(0, at);
    }
    out.push_back(text);
  } else {
    text = strip(text, {}, Side::right);
    while (!text.empty()) {
      if (limit-- == 0) {
        out.push_back(strip(text, {}, Side::left));
        break;
      }
      size_t begin = text.size();
      while (begin > 0) {
        const size_t start = last_start(text.substr(0, begin));
        size_t at = start;
        if (is_space(next_code(text, at))) break;
        begin = start;
      }
      out.push_back(text.substr(begin));
      text = strip(text.substr(0, begin), {}, Side::right);
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const int32_t code = next_code(text, at);
    if (!is_line_end(code)) continue;
    if (code == '\r' && at < text.size() && text[at] == '\n') ++at;
    out.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t limit) {
  std::string out;
  if (from.empty()) {  // between all characters, as Python does
    for (const std::string_view character : characters(text)) {
      if (limit != 0) out += to, --limit;
      out += character;
    }
    if (limit != 0) out += to;
    return out;
  }
  for (size_t at = 0; limit != 0 && (at = text.find(from)) != std::string_view::npos; --limit) {
    (out += text.substr(0, at)) += to;
    text.remove_prefix(at + from.size());
  }
  return out += text;
}

int64_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) return code_count(text) + 1;
  int64_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++n;
  return n;
}

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&#34;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += c;
  }
  return out;
}

}  // namespace tern::jinja
