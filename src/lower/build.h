#pragma once

#include "lower/choose.h"

namespace tern::lowering {

// Buffers, kernels and steps: candidates write their launches, each range becomes a list with phases.
Result<Program> build_program(const Graph& graph, const Grouping& grouping, const Chosen& chosen, const Caps& caps,
                              const std::vector<Bounds>& ranges);

}  // namespace tern::lowering
