// A kernel with what it is run over.
#pragma once

#include "unit/emit/same.h"

namespace tern::test {

struct TextCase {
  std::string name;
  kir::Kernel kernel;
  Bytes buffers;
  std::vector<uint32_t> dims;
  uint32_t groups = 1;
};

}  // namespace tern::test
