// Python's str methods.
#include "llm/chat/lib/string_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "llm/chat/jinja/interp.h"
#include "llm/chat/value/text.h"

namespace tern::jinja {
namespace {

// An optional string argument: absent where undefined or None.
bool text_arg(Interp& in, std::string_view who, const Value& value, std::optional<std::string_view>& out) {
  if (value.is_undefined() || value.is_none()) return true;
  if (!value.is_string()) return in.fail(fmt::format("{} wants a str, not {}", who, type_name(value))), false;
  out = value.string();
  return true;
}
bool int_arg(Interp& in, std::string_view who, const Value& value, int64_t& out) {
  if (value.is_undefined() || value.is_none()) return true;
  if (!value.is_integral()) return in.fail(fmt::format("{} wants an int, not {}", who, type_name(value))), false;
  out = value.integer();
  return true;
}

template <std::string (*map)(std::string_view)>
Value mapped(Interp& in, const Value& self, Args& args) {
  if (!bind_args(in, "the method", args, {}, nullptr)) return Value();
  return in.text(map(self.string()));
}

template <Side side>
Value strip_method(Interp& in, const Value& self, Args& args) {
  Value v[1];
  std::optional<std::string_view> chars;
  if (!bind_args(in, "strip", args, {""}, v) || !text_arg(in, "strip", v[0], chars)) return Value();
  if (!in.work(self.string().size() * (chars ? chars->size() / 8 + 1 : 1))) return Value();
  return in.text(std::string(strip(self.string(), chars, side)));
}

using Splitter = std::vector<std::string_view> (*)(std::string_view, std::optional<std::string_view>, int64_t);
template <Splitter splitter>
Value split_method(Interp& in, const Value& self, Args& args) {
  Value v[2];
  std::optional<std::string_view> separator;
  int64_t limit = -1;
  if (!bind_args(in, "split", args, {"sep", "maxsplit"}, v) || !text_arg(in, "split", v[0], separator) ||
      !int_arg(in, "split", v[1], limit))
    return Value();
  if (separator && separator->empty()) return in.fail("split wants a separator that is not empty");
  if (!in.work(self.string().size() * 4)) return Value();
  std::vector<Value> out;
  for (const std::string_view part : splitter(self.string(), separator, limit))
    out.push_back(in.text(std::string(part)));
  return in.list(std::move(out));
}

Value split_lines_method(Interp& in, const Value& self, Args& args) {
  Value v[1];
  if (!bind_args(in, "splitlines", args, {"keepends"}, v)) return Value();
  std::vector<Value> out;
  for (const std::string_view line : split_lines(self.string(), truthy(v[0])))
    out.push_back(in.text(std::string(line)));
  return in.list(std::move(out));
}

// startswith and endswith take a str or a tuple of them.
template <bool start>
Value edge(Interp& in, const Value& self, Args& args) {
  static constexpr std::string_view kWho = start ? "startswith" : "endswith";
  Value v[1];
  if (!bind_args(in, kWho, args, {""}, v)) return Value();
  const auto fits = [&](const Value& part) {
    if (!part.is_string())
      return in.fail(fmt::format("{} wants a str or a tuple of them, not {}", kWho, type_name(part))), false;
    return start ? self.string().starts_with(part.string()) : self.string().ends_with(part.string());
  };
  if (!v[0].is(Kind::list) || !v[0].list().tuple) return Value(fits(v[0]));
  return in.work(v[0].list().items.size())
             ? Value(std::any_of(v[0].list().items.begin(), v[0].list().items.end(), fits))
             : Value();
}

Value replace_method(Interp& in, const Value& self, Args& args) {
  Value v[3];
  std::optional<std::string_view> from, to;
  int64_t limit = -1;
  if (!bind_args(in, "replace", args, {"", "", "count"}, v) || !text_arg(in, "replace", v[0], from) ||
      !text_arg(in, "replace", v[1], to) || !int_arg(in, "replace", v[2], limit))
    return Value();
  if (!from || !to) return in.fail("replace wants what and with what");
  if (!in.memory(self.string().size() + static_cast<uint64_t>(count_of(self.string(), *from)) * to->size()))
    return Value();
  return in.text(replace(self.string(), *from, *to, limit));
}

enum class Found : uint8_t { position, must, number };
template <Found what, bool last>
Value find_method_(Interp& in, const Value& self, Args& args) {
  Value v[3];
  std::optional<std::string_view> part;
  if (!bind_args(in, "find", args, {"", "", ""}, v) || !text_arg(in, "find", v[0], part)) return Value();
  if (!part) return in.fail("find wants a str");
  const std::string_view text = self.string();
  const int64_t size = code_count(text);
  int64_t begin = 0, end = size;
  if (!int_arg(in, "find", v[1], begin) || !int_arg(in, "find", v[2], end)) return Value();
  const auto place = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? std::max<int64_t>(at, -size) + size : at, 0, size);
  };
  const bool past = begin > size;
  begin = place(begin), end = std::max(place(end), begin);
  const size_t first = byte_of_code(text, begin);
  const std::string_view range = text.substr(first, byte_of_code(text, end) - first);
  if (what == Found::number) return Value(past ? int64_t{0} : count_of(range, *part));
  const size_t at = past ? std::string_view::npos : last ? range.rfind(*part) : range.find(*part);
  if (at != std::string_view::npos) return Value(begin + code_count(range.substr(0, at)));
  return what == Found::must ? in.fail("index: the str does not hold it") : Value(int64_t{-1});
}

Value join(Interp& in, const Value& self, Args& args) {
  Value v[1];
  std::vector<Value> parts;
  if (!bind_args(in, "join", args, {""}, v) || !in.iterate(v[0], parts) ||
      !in.memory(in.weigh(v[0]) + parts.size() * self.string().size()))
    return Value();
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_string()) return in.fail(fmt::format("join wants strings, not {}", type_name(parts[i])));
    (out += i > 0 ? self.string() : std::string()) += parts[i].string();
  }
  return in.text(std::move(out));
}

template <bool prefix>
Value remove_edge(Interp& in, const Value& self, Args& args) {
  Value v[1];
  std::optional<std::string_view> part;
  if (!bind_args(in, "removeprefix", args, {""}, v) || !text_arg(in, "removeprefix", v[0], part)) return Value();
  std::string_view text = self.string();
  if (part && prefix && text.starts_with(*part)) text.remove_prefix(part->size());
  if (part && !prefix && text.ends_with(*part)) text.remove_suffix(part->size());
  return in.text(std::string(text));
}

template <bool last>
Value partition(Interp& in, const Value& self, Args& args) {
  Value v[1];
  std::optional<std::string_view> part;
  if (!bind_args(in, "partition", args, {""}, v) || !text_arg(in, "partition", v[0], part)) return Value();
  if (!part || part->empty()) return in.fail("partition wants a separator");
  const std::string_view text = self.string();
  const size_t at = last ? text.rfind(*part) : text.find(*part);
  if (at == std::string_view::npos)
    return last ? in.list({Value(""), Value(""), self}, true) : in.list({self, Value(""), Value("")}, true);
  return in.list(
      {in.text(std::string(text.substr(0, at))), Value(*part), in.text(std::string(text.substr(at + part->size())))},
      true);
}

// ljust, rjust, zfill.
enum class Pad : uint8_t { left, right, zeros };
template <Pad pad>
Value justify(Interp& in, const Value& self, Args& args) {
  Value v[2];
  std::optional<std::string_view> fill;
  int64_t width = 0;
  if (!bind_args(in, "a padding method", args, {"", ""}, v) || !int_arg(in, "a padding method", v[0], width) ||
      !text_arg(in, "a padding method", v[1], fill))
    return Value();
  const int64_t gap = std::max<int64_t>(0, width - code_count(self.string()));
  if (fill && code_count(*fill) != 1) return in.fail("padding wants one character");
  const std::string_view one = pad == Pad::zeros ? "0" : fill.value_or(" ");
  if (static_cast<uint64_t>(gap) > (uint64_t{1} << 40) || !in.memory(static_cast<uint64_t>(gap) * one.size()))
    return in.memory(uint64_t{1} << 40), Value();
  std::string padding;
  for (int64_t i = 0; i < gap; ++i) padding += one;
  if (pad == Pad::right) return in.text(self.string() + padding);
  const bool sign = pad == Pad::zeros && (self.string().starts_with('-') || self.string().starts_with('+'));
  return in.text(sign ? self.string()[0] + padding + self.string().substr(1) : padding + self.string());
}

// All characters are of the kind, and there is one.
template <bool (*kind)(int32_t)>
Value all_of_kind(Interp&, const Value& self, Args&) {
  for (size_t at = 0; at < self.string().size();)
    if (!kind(next_code(self.string(), at))) return Value(false);
  return Value(!self.string().empty());
}
bool is_alnum(int32_t code) { return is_alpha(code) || is_digit(code); }
template <bool (*wanted)(int32_t), bool (*other)(int32_t)>
Value cased(Interp&, const Value& self, Args&) {
  bool any = false;
  for (size_t at = 0; at < self.string().size();) {
    const int32_t code = next_code(self.string(), at);
    if (other(code)) return Value(false);
    any |= wanted(code);
  }
  return Value(any);
}

// "{} {0} {name}" without format specifications.
Value format(Interp& in, const Value& self, Args& args) {
  const std::string& text = self.string();
  std::string out;
  size_t counter = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      out += c;
      ++i;
    } else if (c == '{') {
      const size_t end = text.find('}', i);
      const std::string name = end == std::string::npos ? "!" : text.substr(i + 1, end - i - 1);
      if (name.find_first_of("!:.[{") != std::string::npos)
        return in.fail("this form of format is not supported", Code::unsupported);
      const bool number = !name.empty() && name.size() < 6 && name.find_first_not_of("0123456789") == std::string::npos;
      const size_t index = name.empty() ? counter++
                           : number     ? static_cast<size_t>(std::stoul(name))
                                        : args.positional.size();
      const auto named =
          std::find_if(args.named.begin(), args.named.end(), [&](const auto& a) { return a.first == name; });
      const Value* value = index < args.positional.size() ? &args.positional[index]
                           : named != args.named.end()    ? &named->second
                                                          : nullptr;
      if (value == nullptr) return in.fail(fmt::format("format has no value for \"{}\"", printable(name, 40)));
      if (!in.memory(in.weigh(*value))) return Value();
      out += to_text(*value);
      i = end;
    } else if (c == '}') {
      return in.fail("format with a single \"}\"");
    } else {
      out += c;
    }
  }
  return in.text(std::move(out));
}

constexpr Method kMethods[] = {
    {"strip", strip_method<Side::both>},
    {"lstrip", strip_method<Side::left>},
    {"rstrip", strip_method<Side::right>},
    {"split", split_method<split>},
    {"rsplit", split_method<rsplit>},
    {"splitlines", split_lines_method},
    {"startswith", edge<true>},
    {"endswith", edge<false>},
    {"upper", mapped<upper>},
    {"lower", mapped<lower>},
    {"casefold", mapped<lower>},
    {"title", mapped<title>},
    {"capitalize", mapped<capitalize>},
    {"swapcase", mapped<swapcase>},
    {"replace", replace_method},
    {"find", find_method_<Found::position, false>},
    {"rfind", find_method_<Found::position, true>},
    {"index", find_method_<Found::must, false>},
    {"rindex", find_method_<Found::must, true>},
    {"count", find_method_<Found::number, false>},
    {"join", join},
    {"removeprefix", remove_edge<true>},
    {"removesuffix", remove_edge<false>},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"ljust", justify<Pad::right>},
    {"rjust", justify<Pad::left>},
    {"zfill", justify<Pad::zeros>},
    {"isdigit", all_of_kind<is_digit>},
    {"isnumeric", all_of_kind<is_digit>},
    {"isdecimal", all_of_kind<is_digit>},
    {"isalpha", all_of_kind<is_alpha>},
    {"isalnum", all_of_kind<is_alnum>},
    {"isspace", all_of_kind<is_space>},
    {"isupper", cased<is_upper, is_lower>},
    {"islower", cased<is_lower, is_upper>},
    {"format", format},
};

}  // namespace

const Method* find_string_method(std::string_view name) {
  const auto* it =
      std::find_if(std::begin(kMethods), std::end(kMethods), [&](const Method& m) { return m.name == name; });
  return it == std::end(kMethods) ? nullptr : it;
}

}  // namespace tern::jinja
