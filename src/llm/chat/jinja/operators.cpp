// Python's operators on template values.
#include <fmt/format.h>

#include <cmath>

#include "llm/chat/jinja/interp.h"

namespace tern::jinja {
namespace {

std::string_view spelling(Op op) {
  static constexpr std::string_view kText[] = {
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kText[static_cast<size_t>(op)];
}

// Rounds towards minus infinity; b is not 0 and not (min, -1).
int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0); }

// False on overflow.
bool int_power(int64_t base, int64_t exponent, int64_t& out) {
  out = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(out, base, &out)) return false;
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return false;
  }
  return true;
}

double real_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Value int_arithmetic(Interp& in, Op op, int64_t a, int64_t b) {
  int64_t out = 0;
  bool fits = true;
  switch (op) {
    case Op::add: fits = !__builtin_add_overflow(a, b, &out); break;
    case Op::sub: fits = !__builtin_sub_overflow(a, b, &out); break;
    case Op::mul: fits = !__builtin_mul_overflow(a, b, &out); break;
    case Op::div: return b == 0 ? in.fail("division by zero") : Value(static_cast<double>(a) / static_cast<double>(b));
    case Op::floordiv:
    case Op::mod:
      if (b == 0) return in.fail("division by zero");
      if (b == -1) {
        if (op == Op::mod) return Value(int64_t{0});
        fits = !__builtin_sub_overflow(int64_t{0}, a, &out);
      } else {
        out = op == Op::floordiv ? floor_div(a, b) : a - floor_div(a, b) * b;
      }
      break;
    case Op::pow:
      if (b < 0)
        return a == 0 ? in.fail("division by zero") : Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
      fits = int_power(a, b, out);
      break;
    default: break;
  }
  return fits ? Value(out) : in.fail(fmt::format("{} {} {} does not fit in 64 bits", a, spelling(op), b));
}

Value real_arithmetic(Interp& in, Op op, double a, double b) {
  if (b == 0 && (op == Op::div || op == Op::floordiv || op == Op::mod)) return in.fail("division by zero");
  switch (op) {
    case Op::add: return Value(a + b);
    case Op::sub: return Value(a - b);
    case Op::mul: return Value(a * b);
    case Op::div: return Value(a / b);
    case Op::floordiv: return Value(std::floor(a / b));
    case Op::mod: return Value(real_mod(a, b));
    case Op::pow: return Value(std::pow(a, b));
    default: return Value();
  }
}

Value repeated(Interp& in, const Value& what, int64_t times) {
  if (times < 0) times = 0;
  const uint64_t size = what.is_string() ? what.string().size() : what.list().items.size() * sizeof(Value);
  if (size != 0 && static_cast<uint64_t>(times) > (uint64_t{1} << 40) / size)
    return in.memory(uint64_t{1} << 40), Value();
  if (!in.memory(size * static_cast<uint64_t>(times))) return Value();
  if (what.is_string()) {
    std::string out;
    for (int64_t i = 0; i < times && size != 0; ++i) out += what.string();
    return in.text(std::move(out));
  }
  std::vector<Value> out;
  for (int64_t i = 0; i < times && size != 0; ++i)
    out.insert(out.end(), what.list().items.begin(), what.list().items.end());
  return in.list(std::move(out), what.list().tuple);
}

}  // namespace

Value Interp::arithmetic(Op op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is(Kind::real) || b.is(Kind::real)) return real_arithmetic(*this, op, a.number(), b.number());
    return int_arithmetic(*this, op, a.integer(), b.integer());
  }
  if (op == Op::add && a.is_string() && b.is_string()) {
    if (!memory(a.string().size() + b.string().size())) return Value();
    return text(a.string() + b.string());
  }
  if (op == Op::add && a.is(Kind::list) && b.is(Kind::list) && a.list().tuple == b.list().tuple) {
    std::vector<Value> items = a.list().items;
    items.insert(items.end(), b.list().items.begin(), b.list().items.end());
    return list(std::move(items), a.list().tuple);
  }
  if (op == Op::mul && (a.is_string() || a.is(Kind::list)) && b.is_integral()) return repeated(*this, a, b.integer());
  if (op == Op::mul && (b.is_string() || b.is(Kind::list)) && a.is_integral()) return repeated(*this, b, a.integer());
  if (op == Op::mod && a.is_string()) {
    Args args;
    if (b.is(Kind::list) && b.list().tuple)
      args.positional = b.list().items;
    else
      args.positional.push_back(b);
    return format_percent(*this, a.string(), args);
  }
  for (const Value* value : {&a, &b})
    if (value->is_undefined())
      return fail(fmt::format("\"{}\" is undefined", value->undefined_name() ? *value->undefined_name() : "a value"));
  return fail(fmt::format("\"{}\" does not work between {} and {}", spelling(op), type_name(a), type_name(b)));
}

int Interp::order(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.integer() < b.integer() ? -1 : a.integer() > b.integer() ? 1 : 0;
    return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
  }
  if (a.is_string() && b.is_string()) {
    work(std::min(a.string().size(), b.string().size()));
    return a.string().compare(b.string());  // UTF-8 keeps the order of code points
  }
  if (a.is(Kind::list) && b.is(Kind::list) && a.list().tuple == b.list().tuple) {
    const auto &x = a.list().items, &y = b.list().items;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i)
      if (!work(weigh(x[i])) || !equal(x[i], y[i])) return failed() ? 0 : order(x[i], y[i]);
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  for (const Value* value : {&a, &b})
    if (value->is_undefined())
      return fail(fmt::format("\"{}\" is undefined", value->undefined_name() ? *value->undefined_name() : "a value")),
             0;
  return fail(fmt::format("{} and {} have no order", type_name(a), type_name(b))), 0;
}

bool Interp::contains(const Value& container, const Value& part) {
  if (failed()) return false;
  switch (container.kind()) {
    case Kind::undefined: return false;
    case Kind::string:
      if (!part.is_string()) return fail(fmt::format("\"in\" a str wants a str, not {}", type_name(part))), false;
      return work(container.string().size()) && container.string().find(part.string()) != std::string::npos;
    case Kind::list:
      if (!work(weigh(part) + (weigh(part) / 16 + 1) * container.list().items.size())) return false;
      for (const Value& item : container.list().items)
        if (equal(item, part)) return true;
      return false;
    case Kind::dict:
      if (!work(part.is_string() ? 8 : weigh(part) * (container.dict().items.size() + 1))) return false;
      return container.dict().find(part) != nullptr;
    default: return fail(fmt::format("\"in\" does not work on {}", type_name(container))), false;
  }
}

bool Interp::compare(Op op, const Value& a, const Value& b) {
  const bool nan = (a.is(Kind::real) && std::isnan(a.number())) || (b.is(Kind::real) && std::isnan(b.number()));
  switch (op) {
    case Op::eq: return work(std::min(weigh(a), weigh(b))) && equal(a, b);
    case Op::ne: return work(std::min(weigh(a), weigh(b))) && !equal(a, b);
    case Op::lt: return order(a, b) < 0 && !failed();
    case Op::gt: return order(a, b) > 0 && !failed();
    case Op::le: return order(a, b) <= 0 && !failed() && !nan;
    case Op::ge: return order(a, b) >= 0 && !failed() && !nan;
    case Op::in: return contains(b, a);
    case Op::not_in: return !contains(b, a) && !failed();
    default: return false;
  }
}

}  // namespace tern::jinja
