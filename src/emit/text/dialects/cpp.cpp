// C++ for this host's own compiler, without headers: a function that is called once a lane, one workgroup at a time.
// For -ffp-contract=off and, as bindings are looked at as several types, -fno-strict-aliasing.
#include "emit/text/dialects/cxx.h"

namespace tern::emit {
namespace {

using kir::Op;

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
    {Op::half_to_f32, kir::none, "tern_f32($a)"},
    {Op::f32_to_half, kir::none, "tern_half($a)"},
    {Op::dot4, kir::none, "tern_dot4($a, $b, $c)"},
    {Op::barrier, kir::none, "at.barrier(__LINE__);"},
    {Op::subgroup_add, kir::i32, "(int)tern_all(at, (unsigned int)$a, __LINE__, [](auto a, auto b) { return a + b; })"},
    {Op::subgroup_add, kir::none, "tern_all(at, $a, __LINE__, [](auto a, auto b) { return a + b; })"},
    {Op::subgroup_min, kir::none, "tern_all(at, $a, __LINE__, [](auto a, auto b) { return a < b ? a : b; })"},
    {Op::subgroup_max, kir::none, "tern_all(at, $a, __LINE__, [](auto a, auto b) { return a > b ? a : b; })"},
};

// Halves in plain arithmetic: small ones by a product, and by a sum whose last place is theirs.
constexpr std::string_view kMore = R"(struct tern_thread {
  unsigned int lane, lanes, group, subgroup;  // lanes of a subgroup, at most 64
  void (*barrier)(unsigned int line);
  const unsigned long long* (*gather)(unsigned long long mine, unsigned int line);  // what each of its lanes gives
};
template <class T, class F> inline T tern_as(F v);
inline float tern_f32(unsigned int bits) {
  const unsigned int size = bits & 0x7fffu, sign = (bits & 0x8000u) << 16;
  return tern_as<float>(sign | (size >= 0x7c00u ? 0x7f800000u | size << 13 : tern_as<unsigned int>(tern_as<float>(size << 13) * 0x1p112f)));
}
inline unsigned int tern_half(float x) {
  const unsigned int bits = tern_as<unsigned int>(x), size = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
  if (size >= 0x477ff000u) return sign | (size > 0x7f800000u ? 0x7e00u : 0x7c00u);
  if (size < 0x38800000u) return sign | (tern_as<unsigned int>(tern_as<float>(size) + 0.5f) - 0x3f000000u);
  return sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
}
inline int tern_dot4(int a, unsigned int b, unsigned int c) { for (int i = 0; i < 32; i += 8) a = (int)((unsigned int)a + (unsigned int)((signed char)(b >> i) * (signed char)(c >> i)));
  return a; }
template <class T, class Op> T tern_all(const tern_thread& at, T v, unsigned int line, Op op) {
  const unsigned long long* all = at.gather(tern_as<unsigned int>(v), line);
  const unsigned int rest = at.lanes - at.lane / at.subgroup * at.subgroup;
  unsigned int n = rest < at.subgroup ? rest : at.subgroup;
  T part[64];
  for (unsigned int i = 0; i < n; ++i) part[i] = tern_as<T>((unsigned int)all[i]);
  for (; n > 1; n = (n + 1) / 2)
    for (unsigned int i = 0; i < n / 2; ++i) part[i] = op(part[i], part[i + (n + 1) / 2]);
  return part[0];
}
template <class T> struct alignas(2 * sizeof(T)) tern_2 { T x, y; };
template <class T> struct alignas(4 * sizeof(T)) tern_4 { T x, y, z, w; };)";

std::string vector(std::string_view type, int width) {
  return "tern_" + std::to_string(width) + "<" + std::string(type) + ">";
}

std::string head(const Writer& w) {
  return cxx_prelude("inline", kMore) + "extern \"C\" void " + w.entry() + "(const tern_thread& at, " +
         cxx_arguments(w, " __restrict__") +
         ") {\n  [[maybe_unused]] const unsigned int lane = at.lane, group = at.group, subgroup_id = lane / "
         "at.subgroup, "
         "subgroup_lane = lane % at.subgroup, subgroup_count = (at.lanes + at.subgroup - 1) / at.subgroup;\n" +
         cxx_arrays(w, "static");
}

}  // namespace

constinit const Dialect kCppDialect = {
    .name = "cpp",
    .types = kCxxTypes,
    .ops = kOps,
    .saturate = "tern_cut<$t>($a)",
    .pointer = "$q$t*",
    .half_load = "tern_f32($a[$b])",
    .half_store = "$a[$b] = (unsigned short)tern_half($c);",
    .reinterpret = "tern_as<$t>($a)",
    .tuple = "$t{$a}",
    .vector = vector,
    .number = cxx_number,
    .head = head,
};

}  // namespace tern::emit
