// The first half of compile().
#pragma once

#include "program/program.h"
#include "tern/compile.h"

namespace tern::engine {

// Everything before kernels are made: ties, passes, lowering. Kernels are in kir.
Result<Program> lowered(Graph graph, const Device& device, const Options& options, CompileTimings& timings);

}  // namespace tern::engine
