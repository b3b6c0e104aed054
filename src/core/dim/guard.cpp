#include "core/guard.h"

namespace tern {

static std::set<uint32_t> symbols_of(const DimTable& dims, const Guard& guard) {
  std::set<uint32_t> symbols;
  for (const Dim d : {guard.a, guard.b}) {
    for (const uint32_t s : dims.symbols_of(d)) symbols.insert(s);
  }
  return symbols;
}

Status check_guard(const DimTable& dims, const Guard& guard, std::span<const int64_t> values,
                   const std::function<std::string(uint32_t)>& source) {
  TERN_TRY(const int64_t a, dims.eval(guard.a, values));
  TERN_TRY(const int64_t b, dims.eval(guard.b, values));
  if (a == b) return ok();
  const auto side = [&](Dim d, int64_t value) {
    return dims.text(d) + (d.constant() ? "" : " = " + std::to_string(value));
  };
  std::string by;
  for (const uint32_t s : symbols_of(dims, guard))
    by += (by.empty() ? "" : ", ") + dims.symbols()[s].name + " = " + std::to_string(values[s]) + " by " + source(s);
  return make_error(Code::invalid,
                    (guard.what.empty() ? "sizes disagree" : guard.what) + ": " + side(guard.a, a) + " is not " +
                        side(guard.b, b) + "; " + by,
                    guard.loc.text);
}

bool guard_is_due(const DimTable& dims, const Guard& guard, const std::set<uint32_t>& known,
                  std::optional<uint32_t> given) {
  bool due = !given;
  for (const uint32_t s : symbols_of(dims, guard)) {
    if (!dims.symbols()[s].late) continue;
    if (!given || !known.contains(s)) return false;
    due = due || s == *given;
  }
  return due;
}

Status check_symbol(const DimTable& dims, uint32_t symbol, int64_t value, const std::string& by) {
  const Symbol& s = dims.symbols()[symbol];
  if (value >= s.min && value <= s.max && value % s.multiple == 0) return ok();
  return make_error(Code::invalid, s.name + " is " + std::to_string(value) + " by " + by + ", wants " +
                                       std::to_string(s.min) + " to " + std::to_string(s.max) +
                                       (s.multiple > 1 ? " in steps of " + std::to_string(s.multiple) : ""));
}

}  // namespace tern
