// HIP for AMD's compilers, on the compiler's own builtins: neither headers nor a device library are needed. A thread is
// a lane.
#include "emit/text/dialects/cxx.h"

namespace tern::emit {
namespace {

using kir::Op;

constexpr TypeRow kTypes[] = {{kir::b1, "bool"},          {kir::i32, "int"},       {kir::u32, "unsigned int"},
                              {kir::f32, "float"},        {kir::i64, "long long"}, {kir::u64, "unsigned long long"},
                              {kir::f64, "double"},       {kir::f16, "_Float16"},  {kir::i8, "signed char"},
                              {kir::u8, "unsigned char"}, {kir::i16, "short"},     {kir::u16, "unsigned short"}};

constexpr OpRow kOps[] = {
    {Op::abs, kir::f32, "__builtin_fabsf($a)"},
    {Op::abs, kir::f64, "__builtin_fabs($a)"},
    {Op::floor, kir::f32, "__builtin_floorf($a)"},
    {Op::floor, kir::f64, "__builtin_floor($a)"},
    {Op::round, kir::f32, "__builtin_rintf($a)"},
    {Op::round, kir::f64, "__builtin_rint($a)"},
    {Op::sqrt, kir::f32, "__builtin_sqrtf($a)"},
    {Op::sqrt, kir::f64, "__builtin_sqrt($a)"},
    {Op::fma, kir::f32, "__builtin_fmaf($a, $b, $c)"},
    {Op::fma, kir::f64, "__builtin_fma($a, $b, $c)"},
    {Op::half_to_f32, kir::none, "(float)tern_as<_Float16>((unsigned short)($a))"},
    {Op::f32_to_half, kir::none, "(unsigned int)tern_as<unsigned short>((_Float16)($a))"},
    {Op::dot4, kir::none, "__builtin_amdgcn_sdot4((int)$b, (int)$c, $a, false)"},
    {Op::barrier, kir::none,
     "__builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\"); __builtin_amdgcn_s_barrier(); "
     "__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\");"},
    {Op::subgroup_add, kir::none, "tern_add($a)"},
    {Op::subgroup_min, kir::none, "tern_min($a)"},
    {Op::subgroup_max, kir::none, "tern_max($a)"},
};

constexpr std::string_view kDevice = "__attribute__((device)) inline";
constexpr std::string_view kMore = R"(typedef int tern_int2 __attribute__((ext_vector_type(2)));
typedef int tern_int4 __attribute__((ext_vector_type(4)));
typedef unsigned int tern_uint2 __attribute__((ext_vector_type(2)));
typedef unsigned int tern_uint4 __attribute__((ext_vector_type(4)));
typedef float tern_float2 __attribute__((ext_vector_type(2)));
typedef float tern_float4 __attribute__((ext_vector_type(4)));
#define TERN_DEVICE __attribute__((device)) inline
TERN_DEVICE unsigned int tern_lane() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
template <class T> TERN_DEVICE T tern_across(T v, int mask) {
  union { T value; int bits; } a, b;
  a.value = v, b.bits = __builtin_amdgcn_ds_bpermute((int)(tern_lane() ^ (unsigned int)mask) * 4, a.bits);
  return b.value;
}
template <class T> TERN_DEVICE T tern_add(T v) { for (int o = __builtin_amdgcn_wavefrontsize() / 2; o > 0; o /= 2) v = v + tern_across(v, o); return v; }
template <class T> TERN_DEVICE T tern_min(T v) { for (int o = __builtin_amdgcn_wavefrontsize() / 2; o > 0; o /= 2) { T w = tern_across(v, o); v = v < w ? v : w; } return v; }
template <class T> TERN_DEVICE T tern_max(T v) { for (int o = __builtin_amdgcn_wavefrontsize() / 2; o > 0; o /= 2) { T w = tern_across(v, o); v = v > w ? v : w; } return v; })";

std::string head(const Writer& w) {
  const std::string lanes = std::to_string(w.kernel().lanes);
  std::string text = cxx_prelude(kDevice, kMore) +
                     "extern \"C\" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(" + lanes + ", " +
                     lanes + "))) void " + w.entry() + "(" + cxx_arguments(w, " __restrict__") + ") {\n";
  text +=
      "#pragma clang fp contract(off)\n  const unsigned int lane = __builtin_amdgcn_workitem_id_x(), group = "
      "__builtin_amdgcn_workgroup_id_x();\n";
  if (w.uses(Op::subgroup_id) || w.uses(Op::subgroup_lane) || w.uses(Op::subgroup_count)) {
    text +=
        "  const unsigned int width = __builtin_amdgcn_wavefrontsize(), subgroup_id = lane / width, subgroup_lane = "
        "lane % width, subgroup_count = (" +
        lanes + " + width - 1) / width;\n";
  }
  return text + cxx_arrays(w, "__attribute__((shared))");
}

}  // namespace

constinit const Dialect kHipDialect = {
    .name = "hip",
    .types = kTypes,
    .ops = kOps,
    .saturate = "tern_cut<$t>($a)",
    .pointer = "$q$t*",
    .half_load = "(float)$a[$b]",
    .half_store = "$a[$b] = (_Float16)$c;",
    .reinterpret = "tern_as<$t>($a)",
    .tuple = "($t){$a}",
    .vector = [](std::string_view type, int width) { return "tern_" + cxx_vector(type, width); },
    .number = cxx_number,
    .head = head,
};

}  // namespace tern::emit
