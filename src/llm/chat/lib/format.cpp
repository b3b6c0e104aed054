// Python's '%' on strings.
#include <fmt/format.h>

#include <cstdio>

#include "base/utf8.h"
#include "llm/chat/jinja/interp.h"
#include "llm/chat/lib/library.h"
#include "llm/chat/value/text.h"

namespace tern::jinja {
namespace {

// One "%[flags][width][.precision]c".
struct Spec {
  std::string flags;
  int width = 0;
  int precision = -1;
  char type = 's';
};

// Reads the digits at `at`; false above 4 of them.
bool digits(std::string_view text, size_t& at, int& out) {
  const size_t begin = at;
  out = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9')
    out = at - begin < 4 ? out * 10 + (text[at] - '0') : out, ++at;
  return at - begin <= 4;
}

std::string padded(std::string text, const Spec& spec) {
  const int64_t gap = spec.width - code_count(text);
  if (gap <= 0) return text;
  const std::string fill(static_cast<size_t>(gap), ' ');
  return spec.flags.find('-') != std::string::npos ? text + fill : fill + text;
}

Value one(Interp& in, const Spec& spec, const Value& value, std::string& out) {
  if (!in.memory(in.weigh(value) + static_cast<uint64_t>(spec.width))) return Value();
  if (spec.type == 's' || spec.type == 'r') {
    std::string text = spec.type == 's' ? to_text(value) : to_repr(value);
    if (spec.precision >= 0) text.resize(byte_of_code(text, spec.precision));
    out += padded(std::move(text), spec);
    return Value();
  }
  if (!value.is_number())
    return in.fail(fmt::format("the format %{} wants a number, not {}", spec.type, type_name(value)));
  const bool integral = std::string_view("dixXo").find(spec.type) != std::string_view::npos;
  std::string pattern = "%" + spec.flags + "*.*";
  pattern += integral ? std::string("ll") + spec.type : std::string(1, spec.type);
  const double real = value.number();
  if (integral && !(real > -9.2e18 && real < 9.2e18)) return in.fail("the number is too large to format");
  const auto whole = static_cast<long long>(value.is(Kind::real) ? static_cast<int64_t>(real) : value.integer());
  char buffer[12000];  // %f of the largest double with 4 digits of width and precision
  const int n = integral ? std::snprintf(buffer, sizeof buffer, pattern.c_str(), spec.width, spec.precision, whole)
                         : std::snprintf(buffer, sizeof buffer, pattern.c_str(), spec.width, spec.precision, real);
  out.append(buffer, static_cast<size_t>(n));
  return Value();
}

}  // namespace

Value format_percent(Interp& in, const std::string& text, const Args& args) {
  std::string out;
  size_t used = 0;
  if (!in.memory(text.size())) return Value();
  for (size_t i = 0; i < text.size() && !in.failed(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    Spec spec;
    ++i;
    while (i < text.size() && std::string_view("-+ 0#").find(text[i]) != std::string_view::npos &&
           spec.flags.size() < 5)
      spec.flags += text[i++];
    bool fits = digits(text, i, spec.width);
    if (i < text.size() && text[i] == '.') fits &= digits(text, ++i, spec.precision);
    spec.type = i < text.size() ? text[i] : '\0';
    if (spec.type == '%') {
      out += '%';
      continue;
    }
    if (!fits || spec.type == '\0' || std::string_view("srdixXofFeEgG").find(spec.type) == std::string_view::npos)
      return in.fail(fmt::format("the format \"{}\" is not supported", printable(text, 60)), Code::unsupported);
    if (used >= args.positional.size()) return in.fail("a format with too few values");
    one(in, spec, args.positional[used++], out);
  }
  if (used < args.positional.size()) return in.fail("a format with too many values");
  return in.text(std::move(out));
}

}  // namespace tern::jinja
