// The steps of one Problem, over operand numbers instead of buffers: written by a candidate once, used for every group
// that has this Problem.
#pragma once

#include "lower/choose/choose.h"

namespace tern::lowering {

struct Recipe {
  std::vector<Step> steps;     // Ref::id: an operand, or operands + n for scratch n
  std::vector<Dim> scratch;    // bytes
  std::vector<Access> access;  // of each operand
};

// kernels: where new definitions go; equal ones give one id. problem: the id that kernels and steps name.
class KernelTable {
 public:
  KernelId add(KernelDef def);
  std::vector<KernelDef> take() { return std::move(kernels_); }

 private:
  std::vector<KernelDef> kernels_;
  std::map<Hash, KernelId> ids_;
};

Result<Recipe> make_recipe(const Pick& pick, uint32_t problem, const Asked& asked, KernelTable& kernels);

}  // namespace tern::lowering
