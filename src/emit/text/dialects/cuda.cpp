// CUDA C++ without headers, for NVRTC: a thread is a lane. Operators of floats are intrinsics, which no option fuses.
#include "emit/text/dialects/cxx.h"

namespace tern::emit {
namespace {

using kir::Op;

constexpr OpRow kOps[] = {
    {Op::add, kir::f32, "__fadd_rn($a, $b)"},
    {Op::sub, kir::f32, "__fsub_rn($a, $b)"},
    {Op::mul, kir::f32, "__fmul_rn($a, $b)"},
    {Op::div, kir::f32, "__fdiv_rn($a, $b)"},
    {Op::add, kir::f64, "__dadd_rn($a, $b)"},
    {Op::sub, kir::f64, "__dsub_rn($a, $b)"},
    {Op::mul, kir::f64, "__dmul_rn($a, $b)"},
    {Op::div, kir::f64, "__ddiv_rn($a, $b)"},
    {Op::abs, kir::f32, "fabsf($a)"},
    {Op::abs, kir::f64, "fabs($a)"},
    {Op::floor, kir::f32, "floorf($a)"},
    {Op::floor, kir::f64, "floor($a)"},
    {Op::round, kir::f32, "rintf($a)"},
    {Op::round, kir::f64, "rint($a)"},
    {Op::sqrt, kir::f32, "__fsqrt_rn($a)"},
    {Op::sqrt, kir::f64, "__dsqrt_rn($a)"},
    {Op::fma, kir::f32, "__fmaf_rn($a, $b, $c)"},
    {Op::fma, kir::f64, "__fma_rn($a, $b, $c)"},
    {Op::rem, kir::f32, "fmodf($a, $b)"},
    {Op::rem, kir::f64, "fmod($a, $b)"},
    {Op::half_to_f32, kir::none, "tern_f32($a)"},
    {Op::f32_to_half, kir::none, "tern_half($a)"},
    {Op::dot4, kir::none, "__dp4a((int)$b, (int)$c, $a)"},
    {Op::barrier, kir::none, "__syncthreads();"},
    {Op::subgroup_add, kir::i32, "(int)tern_add<lanes>((unsigned int)$a)"},  // wraps
    {Op::subgroup_add, kir::none, "tern_add<lanes>($a)"},
    {Op::subgroup_min, kir::none, "tern_min<lanes>($a)"},
    {Op::subgroup_max, kir::none, "tern_max<lanes>($a)"},
};

constexpr std::string_view kMore =
    R"(__device__ inline float tern_f32(unsigned int bits) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((unsigned short)bits)); return f; }
__device__ inline unsigned int tern_half(float x) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
struct tern_plus { template <class T> __device__ T operator()(T a, T b) const { return a + b; } };
struct tern_less { template <class T> __device__ T operator()(T a, T b) const { return a < b ? a : b; } };
struct tern_more { template <class T> __device__ T operator()(T a, T b) const { return a > b ? a : b; } };
template <unsigned int lanes, class T, class Op> __device__ inline T tern_all(T v, Op op) {
  if (lanes % 32 == 0) {
    for (int o = 16; o > 0; o /= 2) v = op(v, __shfl_xor_sync(~0u, v, o));
    return v;
  }
  const unsigned int i = threadIdx.x % 32, rest = lanes - threadIdx.x / 32 * 32, n = rest < 32 ? rest : 32, all = ~0u >> (32 - n);
  for (unsigned int left = n, half; left > 1; left = half) {
    half = (left + 1) / 2;
    const T w = __shfl_sync(all, v, i + half < left ? i + half : i);
    v = i + half < left ? op(v, w) : v;
  }
  return __shfl_sync(all, v, 0);
}
template <unsigned int lanes, class T> __device__ inline T tern_add(T v) { return tern_all<lanes>(v, tern_plus()); }
template <unsigned int lanes, class T> __device__ inline T tern_min(T v) { return tern_all<lanes>(v, tern_less()); }
template <unsigned int lanes, class T> __device__ inline T tern_max(T v) { return tern_all<lanes>(v, tern_more()); })";

std::string head(const Writer& w) {
  std::string text = cxx_prelude("__device__ inline", kMore) + "extern \"C\" __global__ void __launch_bounds__(" +
                     std::to_string(w.kernel().lanes) + ") " + w.entry() + "(" + cxx_arguments(w, " __restrict__") +
                     ") {\n";
  text += "  const unsigned int lane = threadIdx.x, group = blockIdx.x;\n";
  if (w.uses_subgroups()) {
    const std::string lanes = std::to_string(w.kernel().lanes);
    text += "  constexpr unsigned int lanes = " + lanes +
            ";\n  const unsigned int subgroup_id = lane / 32, subgroup_lane = lane % 32, subgroup_count = (lanes + 31) "
            "/ 32;\n";
  }
  return text + cxx_arrays(w, "__shared__");
}

}  // namespace

constinit const Dialect kCudaDialect = {
    .name = "cuda",
    .types = kCxxTypes,
    .ops = kOps,
    .saturate = "tern_cut<$t>($a)",
    .pointer = "$q$t*",
    .half_load = "tern_f32($a[$b])",
    .half_store = "$a[$b] = (unsigned short)tern_half($c);",
    .reinterpret = "tern_as<$t>($a)",
    .tuple = "make_$t($a)",
    .vector = cxx_vector,
    .number = cxx_number,
    .head = head,
};

}  // namespace tern::emit
