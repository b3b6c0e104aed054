// The elementwise table: values in f64 and i64, and the type rules.
#include "core/scalar.h"

#include <array>
#include <cmath>
#include <string>

namespace tern {
namespace {

// Two's complement, as every device computes; callers wrap to narrower types.
int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrap_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
// Integer division truncates; by zero gives 0 and lowest / -1 wraps, so that no device traps and all agree.
int64_t int_div(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? wrap_sub(0, a) : a / b; }
// The sign of the dividend; by zero gives the dividend, so that a == div(a, b) * b + rem(a, b) holds always.
int64_t int_rem(int64_t a, int64_t b) { return b == 0 ? a : b == -1 ? 0 : a % b; }
// Shift amounts outside 0..63 give what shifting bit by bit would.
int64_t shl(int64_t a, int64_t b) { return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b); }
int64_t shr(int64_t a, int64_t b) { return b < 0 || b > 63 ? (a < 0 ? -1 : 0) : a >> b; }
double nan_min(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b; }
double nan_max(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b; }
double sign_of(double a) { return std::isnan(a) ? a : a > 0 ? 1.0 : a < 0 ? -1.0 : a; }
double softplus_of(double a) {
  return (a > 0 ? a : 0.0) + std::log1p(std::exp(-std::fabs(a))) + (std::isnan(a) ? a : 0.0);
}

// TERN_NONE in a column makes no function. The two columns are tagged so that one macro can tell.
struct None {};
#define TERN_NONE (None{})

template <class F>
constexpr auto f64_form(F f) -> double (*)(double, double, double) {
  if constexpr (std::is_same_v<decltype(f(0.0, 0.0, 0.0)), None>) {
    return nullptr;
  } else {
    return [](double a, double b, double c) { return static_cast<double>(F{}(a, b, c)); };
  }
}
template <class F>
constexpr auto i64_form(F f) -> int64_t (*)(int64_t, int64_t, int64_t) {
  if constexpr (std::is_same_v<decltype(f(int64_t{0}, int64_t{0}, int64_t{0})), None>) {
    return nullptr;
  } else {
    return [](int64_t a, int64_t b, int64_t c) { return static_cast<int64_t>(F{}(a, b, c)); };
  }
}

// Where unsigned values of 64 bits differ from signed ones of the same bits.
constexpr uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }
using Unsigned = int64_t (*)(int64_t, int64_t, int64_t);
Unsigned u64_form(ScalarOp op) {
  struct Row {
    ScalarOp op;
    Unsigned form;
  };
  static constexpr Row kUnsigned[] = {
      {ScalarOp::div, [](int64_t a, int64_t b, int64_t) { return b == 0 ? 0 : static_cast<int64_t>(u(a) / u(b)); }},
      {ScalarOp::rem, [](int64_t a, int64_t b, int64_t) { return b == 0 ? a : static_cast<int64_t>(u(a) % u(b)); }},
      {ScalarOp::min, [](int64_t a, int64_t b, int64_t) { return u(a) < u(b) ? a : b; }},
      {ScalarOp::max, [](int64_t a, int64_t b, int64_t) { return u(a) > u(b) ? a : b; }},
      {ScalarOp::abs, [](int64_t a, int64_t, int64_t) { return a; }},
      {ScalarOp::sign, [](int64_t a, int64_t, int64_t) { return int64_t{a != 0}; }},
      {ScalarOp::relu, [](int64_t a, int64_t, int64_t) { return a; }},
      {ScalarOp::lt, [](int64_t a, int64_t b, int64_t) { return int64_t{u(a) < u(b)}; }},
      {ScalarOp::le, [](int64_t a, int64_t b, int64_t) { return int64_t{u(a) <= u(b)}; }},
      {ScalarOp::gt, [](int64_t a, int64_t b, int64_t) { return int64_t{u(a) > u(b)}; }},
      {ScalarOp::ge, [](int64_t a, int64_t b, int64_t) { return int64_t{u(a) >= u(b)}; }},
      {ScalarOp::shift_left,
       [](int64_t a, int64_t b, int64_t) { return u(b) > 63 ? 0 : static_cast<int64_t>(u(a) << b); }},
      {ScalarOp::shift_right,
       [](int64_t a, int64_t b, int64_t) { return u(b) > 63 ? 0 : static_cast<int64_t>(u(a) >> b); }},
      {ScalarOp::clamp,
       [](int64_t a, int64_t b, int64_t c) {
         const int64_t low = u(a) < u(b) ? b : a;
         return u(low) > u(c) ? c : low;
       }},
  };
  for (const Row& row : kUnsigned) {
    if (row.op == op) return row.form;
  }
  return nullptr;
}

constexpr size_t kCount = static_cast<size_t>(ScalarOp::count_);
const std::array<ScalarRow, kCount> kRows = {{
#define TERN_SCALAR(name, arity, rule, f64_value, i64_value, kir_value)                                               \
  {#name,                                                                                                             \
   arity,                                                                                                             \
   ScalarRule::rule,                                                                                                  \
   f64_form(                                                                                                          \
       []([[maybe_unused]] double a, [[maybe_unused]] double b, [[maybe_unused]] double c) { return f64_value; }),    \
   i64_form(                                                                                                          \
       []([[maybe_unused]] int64_t a, [[maybe_unused]] int64_t b, [[maybe_unused]] int64_t c) { return i64_value; }), \
   u64_form(ScalarOp::name)},
#include "core/scalar_ops.inc"
#undef TERN_SCALAR
}};

std::string types_text(std::span<const DType> in) {
  std::string s;
  for (size_t i = 0; i < in.size(); ++i) s += (i ? ", " : "") + std::string(dtype_name(in[i]));
  return s;
}

Error refuse_types(const ScalarRow& row, std::span<const DType> in, std::string_view wants) {
  return make_error(Code::invalid, std::string(row.name) + "(" + types_text(in) + "): wants " + std::string(wants));
}

}  // namespace

std::span<const ScalarRow> scalar_rows() { return kRows; }
const ScalarRow& scalar_row(ScalarOp op) { return kRows[static_cast<size_t>(op)]; }

Result<DType> scalar_type(ScalarOp op, std::span<const DType> in, DType cast_to) {
  const ScalarRow& row = scalar_row(op);
  if (in.size() != row.arity) {
    return make_error(Code::invalid, std::string(row.name) + " takes " + std::to_string(row.arity) + " operands, got " +
                                         std::to_string(in.size()));
  }
  if (row.rule == ScalarRule::cast) return cast_to;
  if (row.rule == ScalarRule::select) {
    if (in[0] != DType::boolean || in[1] != in[2]) return refuse_types(row, in, "bool and two equal types");
    return in[1];
  }
  for (DType t : in) {
    if (t != in[0]) return refuse_types(row, in, "equal types");
  }
  const DType t = in[0];
  switch (row.rule) {
    case ScalarRule::same_float:
      if (!is_float(t)) return refuse_types(row, in, "floats");
      return t;
    case ScalarRule::same_number:
      if (!is_float(t) && !is_int(t)) return refuse_types(row, in, "floats or integers");
      return t;
    case ScalarRule::same_int:
      if (!is_int(t) && t != DType::boolean) return refuse_types(row, in, "integers or bool");
      return t;
    case ScalarRule::compare:
      if (is_complex(t)) return refuse_types(row, in, "real types");
      return DType::boolean;
    case ScalarRule::logic:
      if (t != DType::boolean) return refuse_types(row, in, "bool");
      return DType::boolean;
    case ScalarRule::to_bool:
      if (!is_float(t)) return refuse_types(row, in, "floats");
      return DType::boolean;
    case ScalarRule::select:
    case ScalarRule::cast: break;  // answered above
  }
  return make_error(Code::internal, "a scalar rule without a case");
}

}  // namespace tern
