#include "kernels/kernels.h"

namespace tern {

#define TERN_KERNEL(name) extern const Candidate name;
#include "kernels/kernel_list.inc"
#undef TERN_KERNEL

std::span<const Candidate> kernel_candidates() {
  static const Candidate list[] = {
#define TERN_KERNEL(name) name,
#include "kernels/kernel_list.inc"
#undef TERN_KERNEL
  };
  return list;
}

}  // namespace tern
