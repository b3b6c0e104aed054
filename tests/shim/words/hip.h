// The builtins of AMD's compilers that kernels use. For clang: others lack its vectors.
#pragma once

#define TERN_SHIM_MODULE
#include "host.h"

// Attributes that mean nothing here go; those that clang knows everywhere stay.
#define __attribute__(list) TERN_SHIM_ATTRIBUTE list
#define TERN_SHIM_ATTRIBUTE(one) TERN_SHIM_##one
#define TERN_SHIM_global
#define TERN_SHIM_device
#define TERN_SHIM_shared static
#define TERN_SHIM_amdgpu_flat_work_group_size(least, most)
#define TERN_SHIM_ext_vector_type(width) __attribute__((ext_vector_type(width)))

inline unsigned __builtin_amdgcn_workitem_id_x() { return tern_host->lane; }
inline unsigned __builtin_amdgcn_workgroup_id_x() { return tern_host->group; }
inline unsigned __builtin_amdgcn_wavefrontsize() { return tern_host->subgroup; }
// Bits of the mask below this lane, in the half of the wavefront that the word stands for.
inline unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned sum) {
  const unsigned at = tern_shim::own();
  return sum + unsigned(__builtin_popcount(at >= 32 ? mask : mask & ((1u << at) - 1)));
}
inline unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned sum) {
  const unsigned at = tern_shim::own();
  return at <= 32 ? sum : sum + unsigned(__builtin_popcount(mask & ((1u << (at - 32)) - 1)));
}
#define __builtin_amdgcn_ds_bpermute(at, v) tern_shim::across(v, unsigned(at) / 4, __LINE__)
inline int __builtin_amdgcn_sdot4(int b, int c, int a, bool) { return tern_shim::dot4(a, unsigned(b), unsigned(c)); }
#define __builtin_amdgcn_fence(order, scope) static_cast<void>(scope)
#define __builtin_amdgcn_s_barrier() tern_host->barrier(__LINE__)
