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
    {Op::dot4, kir::none, "tern_dot4($a, $b, $c)"},
    {Op::barrier, kir::none,
     "__builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\"); __builtin_amdgcn_s_barrier(); "
     "__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\");"},
    {Op::subgroup_add, kir::i32, "(int)tern_add<lanes>((unsigned int)$a)"},  // wraps
    {Op::subgroup_add, kir::none, "tern_add<lanes>($a)"},
    {Op::subgroup_min, kir::none, "tern_min<lanes>($a)"},
    {Op::subgroup_max, kir::none, "tern_max<lanes>($a)"},
};

// Chips from gfx11 on have the instruction under another name. The condition is the text's.
constexpr std::string_view kDot4 =
    "#if defined(__GFX11__) || defined(__GFX12__)\n"
    "TERN_DEVICE int tern_dot4(int a, unsigned int b, unsigned int c) { return __builtin_amdgcn_sudot4(true, (int)b, "
    "true, "
    "(int)c, a, false); }\n"
    "#else\n"
    "TERN_DEVICE int tern_dot4(int a, unsigned int b, unsigned int c) { return __builtin_amdgcn_sdot4((int)b, (int)c, "
    "a, "
    "false); }\n"
    "#endif\n";

constexpr std::string_view kDevice = "__attribute__((device)) inline";
constexpr std::string_view kMore = R"(typedef int tern_int2 __attribute__((ext_vector_type(2)));
typedef int tern_int4 __attribute__((ext_vector_type(4)));
typedef unsigned int tern_uint2 __attribute__((ext_vector_type(2)));
typedef unsigned int tern_uint4 __attribute__((ext_vector_type(4)));
typedef float tern_float2 __attribute__((ext_vector_type(2)));
typedef float tern_float4 __attribute__((ext_vector_type(4)));
#define TERN_DEVICE __attribute__((device)) inline
TERN_DEVICE unsigned int tern_lane() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
template <class T> TERN_DEVICE T tern_from(T v, unsigned int lane) {
  union { T value; int bits; } a, b;
  a.value = v, b.bits = __builtin_amdgcn_ds_bpermute((int)lane * 4, a.bits);
  return b.value;
}
struct tern_plus { template <class T> TERN_DEVICE T operator()(T a, T b) const { return a + b; } };
struct tern_less { template <class T> TERN_DEVICE T operator()(T a, T b) const { return a < b ? a : b; } };
struct tern_more { template <class T> TERN_DEVICE T operator()(T a, T b) const { return a > b ? a : b; } };
// A wavefront may be wider than the workgroup, and the last one of a workgroup not full.
template <unsigned int lanes, class T, class Op> TERN_DEVICE T tern_all(T v, Op op) {
  const unsigned int i = tern_lane(), width = __builtin_amdgcn_wavefrontsize();
  if (lanes % width == 0) {
    for (unsigned int o = width / 2; o > 0; o /= 2) v = op(v, tern_from(v, i ^ o));
    return v;
  }
  const unsigned int rest = lanes - __builtin_amdgcn_workitem_id_x() / width * width, n = rest < width ? rest : width;
  for (unsigned int left = n, half; left > 1; left = half) {
    half = (left + 1) / 2;
    const T w = tern_from(v, i + half < left ? i + half : i);
    v = i + half < left ? op(v, w) : v;
  }
  return tern_from(v, 0);
}
template <unsigned int lanes, class T> TERN_DEVICE T tern_add(T v) { return tern_all<lanes>(v, tern_plus()); }
template <unsigned int lanes, class T> TERN_DEVICE T tern_min(T v) { return tern_all<lanes>(v, tern_less()); }
template <unsigned int lanes, class T> TERN_DEVICE T tern_max(T v) { return tern_all<lanes>(v, tern_more()); })";

std::string head(const Writer& w) {
  const std::string lanes = std::to_string(w.kernel().lanes);
  std::string text = cxx_prelude(kDevice, std::string(kMore) + "\n" + std::string(kDot4)) +
                     "extern \"C\" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(" + lanes + ", " +
                     lanes + "))) void " + w.entry() + "(" + cxx_arguments(w, " __restrict__") + ") {\n";
  text +=
      "#pragma clang fp contract(off)\n  const unsigned int lane = __builtin_amdgcn_workitem_id_x(), group = "
      "__builtin_amdgcn_workgroup_id_x();\n";
  if (w.uses_subgroups()) {
    text += "  constexpr unsigned int lanes = " + lanes +
            ";\n  const unsigned int width = __builtin_amdgcn_wavefrontsize(), subgroup_id = lane / width, "
            "subgroup_lane = lane % "
            "width, subgroup_count = (lanes + width - 1) / width;\n";
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
