// Filters that make numbers, or choose between values.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "llm/chat/jinja/interp.h"
#include "llm/chat/lib/library.h"
#include "llm/chat/value/text.h"

namespace tern::jinja {
namespace {

Value absolute(Interp& in, const Value& self, Args&) {
  if (self.is(Kind::real)) return Value(std::fabs(self.number()));
  if (!self.is_integral()) return in.fail(fmt::format("abs of {}", type_name(self)));
  return self.integer() < 0 ? in.arithmetic(Op::sub, Value(int64_t{0}), self) : Value(self.integer());
}

// The number that text spells, all of it; white space around and '_' between digits are let through as Python does.
template <class T, class... Base>
bool spelled(std::string_view text, T& out, Base... base) {
  std::string plain;
  for (const char c : strip(text))
    if (c != '_') plain += c;
  if (plain.starts_with('+')) plain.erase(0, 1);
  const char *first = plain.data(), *last = plain.data() + plain.size();
  const auto parsed = std::from_chars(first, last, out, base...);
  return parsed.ec == std::errc() && parsed.ptr == last && first != last;
}

Value to_int(Interp& in, const Value& self, Args& args) {
  Value v[2];
  if (!bind_args(in, "int", args, {"default", "base"}, v)) return Value();
  const Value fallback = v[0].is_undefined() ? Value(int64_t{0}) : v[0];
  if (self.is_integral()) return Value(self.integer());
  double real = 0;
  int64_t whole = 0;
  const int64_t base = v[1].is_integral() ? v[1].integer() : 10;
  if (base < 2 || base > 36) return in.fail("int wants a base from 2 to 36");
  if (self.is_string() && spelled(self.string(), whole, static_cast<int>(base))) return Value(whole);
  if (self.is(Kind::real))
    real = self.number();
  else if (!self.is_string() || !spelled(self.string(), real))
    return fallback;
  return std::isfinite(real) && std::fabs(real) < 9e18 ? Value(static_cast<int64_t>(real)) : fallback;
}

Value to_float(Interp& in, const Value& self, Args& args) {
  Value v[1];
  if (!bind_args(in, "float", args, {"default"}, v)) return Value();
  if (self.is_number()) return Value(self.number());
  double real = 0;
  if (self.is_string() && spelled(self.string(), real)) return Value(real);
  return v[0].is_undefined() ? Value(0.0) : v[0];
}

Value round(Interp& in, const Value& self, Args& args) {
  Value v[2];
  if (!bind_args(in, "round", args, {"precision", "method"}, v)) return Value();
  if (!self.is_number()) return in.fail(fmt::format("round of {}", type_name(self)));
  if (self.is_integral() && v[0].is_undefined() && v[1].is_undefined()) return Value(self.integer());
  const int64_t digits = v[0].is_integral() ? std::clamp<int64_t>(v[0].integer(), -300, 300) : 0;
  const std::string method = v[1].is_undefined() ? "common" : to_text(v[1]);
  const double scale = std::pow(10.0, static_cast<double>(digits)), x = self.number() * scale;
  if (method == "ceil") return Value(std::ceil(x) / scale);
  if (method == "floor") return Value(std::floor(x) / scale);
  if (method != "common") return in.fail("round wants \"common\", \"ceil\" or \"floor\"");
  if (digits < 0 || digits > 17 || !std::isfinite(self.number())) return Value(std::nearbyint(x) / scale);
  // The decimal digits decide, as in Python: format rounds the exact value, ties to even.
  double out = 0;
  spelled(fmt::format("{:.{}f}", self.number(), static_cast<int>(digits)), out);
  return Value(out);
}

Value fallback(Interp& in, const Value& self, Args& args) {
  Value v[2];
  if (!bind_args(in, "default", args, {"default_value", "boolean"}, v)) return Value();
  const bool missing = self.is_undefined() || (truthy(v[1]) && !truthy(self));
  if (!missing) return self;
  return args.positional.empty() && v[0].is_undefined() ? Value("") : v[0];
}

Value attribute(Interp& in, const Value& self, Args& args) {
  Value v[1];
  if (!bind_args(in, "attr", args, {"name"}, v)) return Value();
  if (!v[0].is_string()) return in.fail("attr wants a name");
  return self.is(Kind::dict) ? Value() : in.attribute(self, v[0].string());  // attributes only, never keys
}

constexpr Filter kFilters[] = {
    {"abs", absolute},     {"int", to_int}, {"float", to_float}, {"round", round},
    {"default", fallback}, {"d", fallback}, {"attr", attribute},
};

}  // namespace

const Filter* find_number_filter(std::string_view name) {
  const auto* it =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const Filter& f) { return f.name == name; });
  return it == std::end(kFilters) ? nullptr : it;
}

}  // namespace tern::jinja
