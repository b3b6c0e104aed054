// Kernels that together use every op and memory form, built for given caps, with inputs: what texts are compared over.
#pragma once

#include "shim/text_case.h"
#include "unit/emit/harness.h"

namespace tern::test {

// What a device of this language may say of itself.
Caps text_caps(std::string_view language, uint32_t max_lanes);
// wide: 64-bit types, where caps have them. random: how many random kernels.
std::vector<TextCase> text_cases(const Caps& caps, uint32_t random);

}  // namespace tern::test
