// Guards: equalities that could not be proved, tested where symbols have values.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>

#include "tern/shape.h"

namespace tern {

// Ok, or both sides with their values and where each symbol in them got its value: source(symbol) is
// "input 'x' axis 0". values: one a symbol of the table.
Status check_guard(const DimTable& dims, const Guard& guard, std::span<const int64_t> values,
                   const std::function<std::string(uint32_t)>& source);

// Whether the guard can be tested now and could not before: all its late symbols are known, and `given` is one of them;
// given nullopt: it has none.
bool guard_is_due(const DimTable& dims, const Guard& guard, const std::set<uint32_t>& known,
                  std::optional<uint32_t> given);

// The value lies within the symbol's bounds; the error says by whom it was given.
Status check_symbol(const DimTable& dims, uint32_t symbol, int64_t value, const std::string& by);

}  // namespace tern
