// Which values are equal in all lanes of a workgroup.
#pragma once

#include <cstdint>
#include <vector>

#include "kir/ir.h"

namespace tern::kir {

enum class Strength : uint8_t {
  strict,    // WGSL's: loads from written bindings and workgroup memory vary, whatever their address
  lockstep,  // a load varies only if its address does
};

struct Uniformity {
  std::vector<uint8_t> varying;        // a node (also: a var whose content may differ between lanes)
  std::vector<uint8_t> varying_block;  // a block that some lanes may skip
  bool uniform(Ref ref) const { return !varying[ref]; }
};

// Expects a well-formed kernel. subgroup_count is uniform; the other subgroup leaves and subgroup results vary, except
// that with lockstep the subgroup is the workgroup, so its results and id are uniform. Thread-safe.
Uniformity uniformity(const Kernel& kernel, Strength strength);

}  // namespace tern::kir
