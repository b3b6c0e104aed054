// Lowers a graph, runs it on paper, and compares with the reference evaluation.
#pragma once

#include "graph/op.h"
#include "lower/lower.h"

namespace tern::test {

// Leaves get random values (integer inputs: in [-1, 9]). given: symbols by name. Two runs, so that states are read
// back.
void expect_same(const Graph& graph, const std::map<std::string, int64_t>& given, uint32_t seed,
                 const LowerOptions& options = {}, const Caps& caps = {}, double tolerance = 1e-5);

}  // namespace tern::test
