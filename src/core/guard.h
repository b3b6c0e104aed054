// Guards: equalities that could not be proved, tested where symbols have values.
#pragma once

#include <functional>
#include <span>

#include "tern/shape.h"

namespace tern {

// Ok, or both sides with their values and where each symbol in them got its value: source(symbol) is
// "input 'x' axis 0". values: one a symbol of the table.
Status check_guard(const DimTable& dims, const Guard& guard, std::span<const int64_t> values,
                   const std::function<std::string(uint32_t)>& source);

}  // namespace tern
