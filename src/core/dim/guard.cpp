#include "core/guard.h"

#include <set>

namespace tern {

Status check_guard(const DimTable& dims, const Guard& guard, std::span<const int64_t> values,
                   const std::function<std::string(uint32_t)>& source) {
  TERN_TRY(const int64_t a, dims.eval(guard.a, values));
  TERN_TRY(const int64_t b, dims.eval(guard.b, values));
  if (a == b) return ok();
  const auto side = [&](Dim d, int64_t value) {
    return dims.text(d) + (d.constant() ? "" : " = " + std::to_string(value));
  };
  std::set<uint32_t> symbols;
  for (const Dim d : {guard.a, guard.b}) {
    for (const uint32_t s : dims.symbols_of(d)) symbols.insert(s);
  }
  std::string by;
  for (const uint32_t s : symbols)
    by += (by.empty() ? "" : ", ") + dims.symbols()[s].name + " = " + std::to_string(values[s]) + " by " + source(s);
  return make_error(Code::invalid,
                    (guard.what.empty() ? "sizes disagree" : guard.what) + ": " + side(guard.a, a) + " is not " +
                        side(guard.b, b) + "; " + by,
                    guard.loc.text);
}

}  // namespace tern
