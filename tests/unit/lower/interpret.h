#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/problem.h"

namespace tern::test {

// Computes the whole Problem at bound sizes, straight from its definition in family.h. buffers: one an operand.
Status interpret(const Problem& problem, const DimTable& dims, std::span<const int64_t> symbols,
                 std::span<std::byte* const> buffers);

}  // namespace tern::test
