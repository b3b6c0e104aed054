// Kernels that together use every op and memory form, built for given caps, with inputs: what texts are compared over.
#pragma once

#include "unit/emit/harness.h"

namespace tern::test {

struct TextCase {
  std::string name;
  kir::Kernel kernel;
  Bytes buffers;
  std::vector<uint32_t> dims;
  uint32_t groups = 1;
};

// wide: 64-bit types, where caps have them. random: how many random kernels.
std::vector<TextCase> text_cases(const Caps& caps, uint32_t random);

}  // namespace tern::test
