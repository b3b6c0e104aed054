// What stands after "is".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "llm/chat/jinja/interp.h"
#include "llm/chat/lib/library.h"
#include "llm/chat/value/text.h"

namespace tern::jinja {
namespace {

template <Kind kind>
bool is_kind(Interp&, const Value& self, Args&) {
  return self.is(kind);
}

bool defined(Interp&, const Value& self, Args&) { return !self.is_undefined(); }
bool is_true(Interp&, const Value& self, Args&) { return self.is(Kind::boolean) && self.boolean(); }
bool is_false(Interp&, const Value& self, Args&) { return self.is(Kind::boolean) && !self.boolean(); }
bool number(Interp&, const Value& self, Args&) { return self.is_number(); }
bool sequence(Interp&, const Value& self, Args&) {
  return self.is_string() || self.is(Kind::list) || self.is(Kind::dict);
}
bool iterable(Interp&, const Value& self, Args&) {
  return self.is_undefined() || self.is_string() || self.is(Kind::list) || self.is(Kind::dict);
}

// Cased letters there are, and all of them of the one case.
template <bool (*wanted)(int32_t), bool (*other)(int32_t)>
bool all_cased(Interp& in, const Value& self, Args&) {
  bool any = false;
  if (!self.is_string() || !in.work(self.string().size())) return false;
  for (size_t at = 0; at < self.string().size();) {
    const int32_t code = next_code(self.string(), at);
    if (other(code)) return false;
    any |= wanted(code);
  }
  return any;
}

bool remainder_is(Interp& in, const Value& self, int64_t divisor, int64_t rest) {
  if (!self.is_number()) return in.fail(fmt::format("a test for numbers on {}", type_name(self))), false;
  if (self.is(Kind::real))
    return std::fmod(std::fabs(self.number()), static_cast<double>(divisor)) == static_cast<double>(rest);
  return divisor == -1 ? rest == 0 : std::abs(self.integer() % divisor) == rest;
}
bool even(Interp& in, const Value& self, Args&) { return remainder_is(in, self, 2, 0); }
bool odd(Interp& in, const Value& self, Args&) { return remainder_is(in, self, 2, 1); }
bool divisible_by(Interp& in, const Value& self, Args& args) {
  Value v[1];
  if (!bind_args(in, "divisibleby", args, {"num"}, v)) return false;
  if (!v[0].is_integral() || v[0].integer() == 0) return in.fail("divisibleby wants an integer that is not 0"), false;
  return remainder_is(in, self, v[0].integer(), 0);
}

template <Op op>
bool compares(Interp& in, const Value& self, Args& args) {
  Value v[1];
  if (!bind_args(in, "a comparison", args, {"other"}, v)) return false;
  if (args.positional.empty() && args.named.empty())
    return in.fail("a comparison wants a value to compare with"), false;
  return in.compare(op, self, v[0]);
}

bool same_as(Interp& in, const Value& self, Args& args) {
  Value v[1];
  if (!bind_args(in, "sameas", args, {"other"}, v) || self.kind() != v[0].kind()) return false;
  if (self.is(Kind::list)) return &self.list() == &v[0].list();
  if (self.is(Kind::dict)) return &self.dict() == &v[0].dict();
  return in.compare(Op::eq, self, v[0]);
}

bool is_filter(Interp&, const Value& self, Args&) { return self.is_string() && find_filter(self.string()) != nullptr; }
bool is_test(Interp&, const Value& self, Args&) { return self.is_string() && find_test(self.string()) != nullptr; }
bool never(Interp&, const Value&, Args&) { return false; }

constexpr Test kTests[] = {
    {"defined", defined},
    {"undefined", is_kind<Kind::undefined>},
    {"none", is_kind<Kind::none>},
    {"boolean", is_kind<Kind::boolean>},
    {"integer", is_kind<Kind::integer>},
    {"float", is_kind<Kind::real>},
    {"string", is_kind<Kind::string>},
    {"mapping", is_kind<Kind::dict>},
    {"callable", is_kind<Kind::function>},
    {"number", number},
    {"sequence", sequence},
    {"iterable", iterable},
    {"true", is_true},
    {"false", is_false},
    {"lower", all_cased<is_lower, is_upper>},
    {"upper", all_cased<is_upper, is_lower>},
    {"even", even},
    {"odd", odd},
    {"divisibleby", divisible_by},
    {"eq", compares<Op::eq>},
    {"equalto", compares<Op::eq>},
    {"==", compares<Op::eq>},
    {"ne", compares<Op::ne>},
    {"!=", compares<Op::ne>},
    {"lt", compares<Op::lt>},
    {"lessthan", compares<Op::lt>},
    {"<", compares<Op::lt>},
    {"le", compares<Op::le>},
    {"<=", compares<Op::le>},
    {"gt", compares<Op::gt>},
    {"greaterthan", compares<Op::gt>},
    {">", compares<Op::gt>},
    {"ge", compares<Op::ge>},
    {">=", compares<Op::ge>},
    {"in", compares<Op::in>},
    {"sameas", same_as},
    {"filter", is_filter},
    {"test", is_test},
    {"escaped", never},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto* it = std::find_if(std::begin(kTests), std::end(kTests), [&](const Test& t) { return t.name == name; });
  return it == std::end(kTests) ? nullptr : it;
}

}  // namespace tern::jinja
