// Kernels as text, executed on fibres and given to the tools of their languages.
#pragma once

#include <span>

#include "core/caps.h"
#include "shim/text_case.h"

namespace tern::test {

// Compiles the cases as caps.language and runs them with each size of subgroups, in several orders of lanes. What the
// buffers hold behind must be what kir's interpreter leaves, and what lies beside them untouched; else the test fails.
// A case is only run where it is legal for caps.
void expect_runs_as_interpreted(const Caps& caps, std::span<const TextCase> cases);

}  // namespace tern::test
