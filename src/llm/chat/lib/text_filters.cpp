// Filters on text.
#include <fmt/format.h>

#include <algorithm>

#include "llm/chat/jinja/interp.h"
#include "llm/chat/lib/library.h"
#include "llm/chat/value/json.h"
#include "llm/chat/value/text.h"

namespace tern::jinja {
namespace {

template <std::string (*map)(std::string_view)>
Value mapped(Interp& in, const Value& self, Args& args) {
  if (!bind_args(in, "the filter", args, {}, nullptr)) return Value();
  return in.text(map(to_text(self)));
}

// A length that an argument asks for: not negative, not above the limit that keeps padding small.
bool size_arg(Interp& in, const Value& value, int64_t fallback, int64_t& out) {
  if (!value.is_undefined() && !value.is_integral())
    return in.fail(fmt::format("a width wants an integer, not {}", type_name(value))), false;
  out = std::max<int64_t>(0, value.is_undefined() ? fallback : value.integer());
  return in.memory(static_cast<uint64_t>(out));
}

Value string(Interp& in, const Value& self, Args&) { return self.is_string() ? self : in.text(to_text(self)); }

Value trim(Interp& in, const Value& self, Args& args) {
  Value v[1];
  if (!bind_args(in, "trim", args, {"chars"}, v)) return Value();
  const std::string text = to_text(self);
  return in.text(std::string(v[0].is_string() ? strip(text, v[0].string()) : strip(text)));
}

// Jinja2's own: a word begins after white space, '-' and opening brackets.
std::string title_words(std::string_view text) {
  std::string out;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t code = next_code(text, at);
    const std::string_view character = text.substr(begin, at - begin);
    out += inside ? lower(character) : upper(character);
    inside = !(is_space(code) || code == '-' || code == '(' || code == '{' || code == '[' || code == '<');
  }
  return out;
}

Value replace_filter(Interp& in, const Value& self, Args& args) {
  Value v[3];
  if (!bind_args(in, "replace", args, {"old", "new", "count"}, v)) return Value();
  if (v[0].is_undefined() || v[1].is_undefined()) return in.fail("replace wants what and with what");
  const std::string text = to_text(self), from = to_text(v[0]), to = to_text(v[1]);
  const int64_t found = count_of(text, from);
  if (!in.memory(text.size() + static_cast<uint64_t>(found) * to.size())) return Value();
  return in.text(replace(text, from, to, v[2].is_integral() ? v[2].integer() : -1));
}

Value indent(Interp& in, const Value& self, Args& args) {
  Value v[3];
  if (!bind_args(in, "indent", args, {"width", "first", "blank"}, v)) return Value();
  std::string fill;
  if (v[0].is_string()) {
    fill = v[0].string();
  } else {
    int64_t width = 0;
    if (!size_arg(in, v[0], 4, width)) return Value();
    fill.assign(static_cast<size_t>(width), ' ');
  }
  if (!self.is_string()) return in.fail(fmt::format("indent wants a str, not {}", type_name(self)));
  const std::string text = self.string() + "\n";  // a last empty line counts, as in Jinja2
  const auto lines = split_lines(text);
  if (!in.memory(lines.size() * (fill.size() + 1))) return Value();
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i == 0 ? truthy(v[1]) : truthy(v[2]) || !lines[i].empty()) out += fill;
    out += lines[i];
  }
  return in.text(std::move(out));
}

Value center(Interp& in, const Value& self, Args& args) {
  Value v[1];
  int64_t width = 0;
  if (!bind_args(in, "center", args, {"width"}, v) || !size_arg(in, v[0], 80, width)) return Value();
  const std::string text = to_text(self);
  const int64_t gap = std::max<int64_t>(0, width - code_count(text));
  const int64_t left = gap / 2 + (gap & width & 1);  // CPython's rule for odd gaps
  return in.text(std::string(static_cast<size_t>(left), ' ') + text +
                 std::string(static_cast<size_t>(gap - left), ' '));
}

Value truncate(Interp& in, const Value& self, Args& args) {
  Value v[4];
  int64_t length = 0, leeway = 0;
  if (!bind_args(in, "truncate", args, {"length", "killwords", "end", "leeway"}, v) ||
      !size_arg(in, v[0], 255, length) || !size_arg(in, v[3], 5, leeway))
    return Value();
  const std::string text = to_text(self), end = v[2].is_undefined() ? "..." : to_text(v[2]);
  if (code_count(text) <= length + leeway) return in.text(text);
  const int64_t keep = length - code_count(end);
  if (keep < 0) return in.fail("truncate wants a length that holds its end");
  std::string out = text.substr(0, byte_of_code(text, keep));
  const size_t space = out.rfind(' ');
  if (!truthy(v[1]) && space != std::string::npos) out.resize(space);
  return in.text(out + end);
}

Value word_count(Interp&, const Value& self, Args&) {
  const std::string text = to_text(self);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const int32_t code = next_code(text, at);
    const bool word = is_alpha(code) || is_digit(code) || code == '_';
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value(words);
}

Value url_encode(Interp& in, const Value& self, Args&) {
  std::string out;
  for (const char c : to_text(self)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return in.text(std::move(out));
}

Value format(Interp& in, const Value& self, Args& args) {
  if (!args.named.empty()) return in.fail("format with named values is not supported", Code::unsupported);
  return format_percent(in, to_text(self), args);
}

Value to_json(Interp& in, const Value& self, Args& args) {
  Value v[4];
  if (!bind_args(in, "tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"}, v)) return Value();
  // Jinja2's own filter takes the indent first; an integer in that place means it.
  if (v[0].is(Kind::integer) && v[1].is_undefined()) std::swap(v[0], v[1]);
  JsonStyle style;
  if (v[1].is_integral()) {
    style.indent = std::clamp<int64_t>(v[1].integer(), 0, 64);
    style.item_separator = ",";
  }
  style.ascii = truthy(v[0]);
  style.sort_keys = truthy(v[3]);
  if (v[2].is(Kind::list) && v[2].list().items.size() == 2) {
    style.item_separator = to_text(v[2].list().items[0]);
    style.key_separator = to_text(v[2].list().items[1]);
  }
  if (!in.memory(in.weigh(self) * (style.indent > 0 ? static_cast<uint64_t>(style.indent) : 1))) return Value();
  auto text = dump_json(self, style);
  return text ? in.text(std::move(*text)) : in.fail("tojson: " + text.error().text);
}

constexpr Filter kFilters[] = {
    {"trim", trim},
    {"string", string},
    {"safe", string},
    {"upper", mapped<upper>},
    {"lower", mapped<lower>},
    {"title", mapped<title_words>},
    {"capitalize", mapped<capitalize>},
    {"escape", mapped<html_escape>},
    {"e", mapped<html_escape>},
    {"forceescape", mapped<html_escape>},
    {"tojson", to_json},
    {"replace", replace_filter},
    {"indent", indent},
    {"center", center},
    {"truncate", truncate},
    {"wordcount", word_count},
    {"urlencode", url_encode},
    {"format", format},
};

}  // namespace

const Filter* find_text_filter(std::string_view name) {
  const auto* it =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const Filter& f) { return f.name == name; });
  return it == std::end(kFilters) ? nullptr : it;
}

}  // namespace tern::jinja
