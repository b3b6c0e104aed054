#pragma once

#include "lower/choose/choose.h"
#include "lower/groups.h"

namespace tern::lowering {

// Buffers, kernels and steps: candidates write their launches once a different Problem, each range becomes a list with
// phases.
Result<Program> build_program(const Graph& graph, const Grouping& grouping, const Chosen& chosen, const Caps& caps,
                              const std::vector<Bounds>& ranges);

}  // namespace tern::lowering
