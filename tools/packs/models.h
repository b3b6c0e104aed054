// The models that packs hold every kernel of.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "program/program.h"
#include "tern/llm.h"
#include "tern/llm/synthetic.h"

namespace tern::packs {

// One step graph to compile.
struct Model {
  ModelShape shape;
  SyntheticOptions formats;
  bool precise = false;
  uint32_t sequences = 1;
  uint32_t context = 4096;
  std::optional<KvKind> kv = std::nullopt;
};

// Kernels know formats, heads and what is fused, not how wide or deep a model is: a few layers of each shape, each
// format and usual mixture of formats in one shape of each family.
std::vector<Model> models();

// kir by key, for one level.
using Kernels = std::map<Hash, KernelDef>;
// Adds those of a model's step graph, lowered for the device: a cpu of that level.
Status add_kernels(const Model& model, const Device& device, const std::string& level, Kernels& kernels);

}  // namespace tern::packs
