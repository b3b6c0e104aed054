// How Python prints values.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "llm/chat/value/text.h"
#include "llm/chat/value/value.h"

namespace tern::jinja {
namespace {

std::string quoted(std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t code = next_code(text, at);
    if (code == quote || code == '\\')
      (out += '\\') += static_cast<char>(code);
    else if (code == '\n')
      out += "\\n";
    else if (code == '\r')
      out += "\\r";
    else if (code == '\t')
      out += "\\t";
    else if (is_printable(code))
      out += text.substr(begin, at - begin);
    else if (code < 0x100)
      out += fmt::format("\\x{:02x}", code);
    else if (code < 0x10000)
      out += fmt::format("\\u{:04x}", code);
    else
      out += fmt::format("\\U{:08x}", code);
  }
  return out += quote;
}

void append_repr(std::string& out, const Value& value);

void append_list(std::string& out, const List& list) {
  out += list.tuple ? '(' : '[';
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(out, list.items[i]);
  }
  if (list.tuple && list.items.size() == 1) out += ',';
  out += list.tuple ? ')' : ']';
}

void append_dict(std::string& out, const Dict& dict) {
  out += '{';
  for (size_t i = 0; i < dict.items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(out, dict.items[i].first);
    out += ": ";
    append_repr(out, dict.items[i].second);
  }
  out += '}';
}

void append_repr(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: out += "Undefined"; return;
    case Kind::none: out += "None"; return;
    case Kind::boolean: out += value.boolean() ? "True" : "False"; return;
    case Kind::integer: out += std::to_string(value.integer()); return;
    case Kind::real: out += real_text(value.number()); return;
    case Kind::string: out += quoted(value.string()); return;
    case Kind::list: return append_list(out, value.list());
    case Kind::dict: return append_dict(out, value.dict());
    case Kind::function: out += "<function>"; return;
    case Kind::space: out += "<namespace>"; return;  // may hold itself: its content is not shown
    case Kind::loop: out += "<loop>"; return;
  }
}

}  // namespace

// Digits of the shortest form, laid out as float.__repr__ does: an exponent below 1e-4 and from 1e16 on.
std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  const std::string_view exponent_text = text.substr(e + 1 + (text[e + 1] == '+' ? 1 : 0));
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  std::string digits;
  for (const char c : text.substr(0, e))
    if (c != '.') digits += c;
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) (out += '.') += digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string to_repr(const Value& value) {
  std::string out;
  append_repr(out, value);
  return out;
}

std::string to_text(const Value& value) {
  if (value.is_string()) return value.string();
  return value.is_undefined() ? std::string() : to_repr(value);
}

}  // namespace tern::jinja
