// The words of CUDA C++ that kernels use.
#pragma once

#define TERN_SHIM_MODULE
#include "host.h"

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(lanes)

namespace tern_shim {
struct Dim3 {
  unsigned x, y, z;
};
}  // namespace tern_shim
#define threadIdx (tern_shim::Dim3{tern_host->lane, 0, 0})
#define blockIdx (tern_shim::Dim3{tern_host->group, 0, 0})
#define blockDim (tern_shim::Dim3{tern_host->lanes, 1, 1})
#define gridDim (tern_shim::Dim3{tern_host->groups, 1, 1})

#define __syncthreads() tern_host->barrier(__LINE__)

namespace tern_shim {
// Lanes of a warp that the mask names and that exist must all take part; the one that is read must be among them.
template <class T>
T shuffle(unsigned mask, T v, unsigned from, unsigned line) {
  if ((mask >> own() & 1) == 0) tern_host->stop("shuffles under a mask that leaves it out", 0, line);
  if ((mask >> from % 32 & 1) == 0) tern_host->stop("reads lane $ of its warp, which the mask leaves out", from, line);
  return across(v, from, line);
}
}  // namespace tern_shim
#define __shfl_xor_sync(mask, v, other) tern_shim::shuffle(mask, v, tern_shim::own() ^ unsigned(other), __LINE__)
#define __shfl_sync(mask, v, from) tern_shim::shuffle(mask, v, unsigned(from), __LINE__)

#define TERN_SHIM_VECTORS(type, name)                                                         \
  struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                    \
  struct alignas(4 * sizeof(type) < 16 ? 4 * sizeof(type) : 16) name##4 { type x, y, z, w; }; \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }                            \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
TERN_SHIM_VECTORS(float, float)
TERN_SHIM_VECTORS(int, int)
TERN_SHIM_VECTORS(unsigned, uint)

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float fabsf(float a) { return __builtin_fabsf(a); }
inline float floorf(float a) { return __builtin_floorf(a); }
inline float rintf(float a) { return __builtin_rintf(a); }
inline double fabs(double a) { return __builtin_fabs(a); }
inline double floor(double a) { return __builtin_floor(a); }
inline double rint(double a) { return __builtin_rint(a); }
inline float fmodf(float a, float b) { return __builtin_fmodf(a, b); }
inline double fmod(double a, double b) { return __builtin_fmod(a, b); }
inline int __dp4a(int b, int c, int a) { return tern_shim::dot4(a, unsigned(b), unsigned(c)); }

// Instructions of PTX, as functions: the program writes asm("cvt.f32.f16 …") as one of these.
inline void ptx_cvt_f32_f16(float& to, unsigned short from) { to = float(tern_shim::same_bits<_Float16>(from)); }
inline void ptx_cvt_rn_f16_f32(unsigned short& to, float from) {
  to = tern_shim::same_bits<unsigned short>(_Float16(from));
}
