// The models that packs hold every kernel of.
#pragma once

#include <vector>

#include "tern/llm.h"
#include "tern/llm/synthetic.h"

namespace tern::packs {

// One step graph to compile.
struct Model {
  ModelShape shape;
  SyntheticOptions formats;
  bool precise = false;
  uint32_t sequences = 1;
};

// Kernels know formats, heads and what is fused, not how wide or deep a model is: a few layers of each shape, each
// format and usual mixture of formats in one shape of each family.
std::vector<Model> models();

}  // namespace tern::packs
