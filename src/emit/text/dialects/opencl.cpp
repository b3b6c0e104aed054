// OpenCL C 1.2: a work-item is a lane.
#include "emit/text/dialects/opencl.h"

namespace tern::emit {

using kir::Op;

std::string opencl_number(kir::Type type, uint64_t bits) {
  if (type == kir::f32 && (bits & 0x7f800000u) == 0x7f800000u) return "as_float(" + c_number(kir::u32, bits) + ")";
  if (type == kir::f64 && (bits >> 52 & 0x7ff) == 0x7ff) return "as_double(" + c_number(kir::u64, bits) + ")";
  return c_number(type, bits);
}

OpenclArguments opencl_arguments(const Writer& w) {
  const kir::Kernel& k = w.kernel();
  OpenclArguments out;
  const auto add = [&](const std::string& type, const std::string& name) {
    out.declared += (out.declared.empty() ? "" : ", ") + type + " " + name;
    out.passed += (out.passed.empty() ? "" : ", ") + name;
  };
  for (uint32_t i = 0; i < k.bindings.size(); ++i)
    add(w.pointer_to(i, w.type(w.storage(i).type)) + " restrict", "b" + std::to_string(i));
  for (uint32_t i = 0; i < k.bindings.size(); ++i) {
    const std::string n = std::to_string(i), pointer = w.pointer_to(i, w.type(w.storage(i).type));
    add("ulong", "o" + n);
    out.moved +=
        "  " + pointer + " p" + n + " = (" + pointer + ")((" + w.pointer_to(i, "char") + ")b" + n + " + o" + n + ");\n";
  }
  for (size_t i = 0; i < k.dims.size(); ++i) add("uint", "d" + std::to_string(i));
  return out;
}

namespace {

constexpr TypeRow kTypes[] = {{kir::b1, "bool"},  {kir::i32, "int"},   {kir::u32, "uint"},   {kir::f32, "float"},
                              {kir::i64, "long"}, {kir::u64, "ulong"}, {kir::f64, "double"}, {kir::f16, "half"},
                              {kir::i8, "char"},  {kir::u8, "uchar"},  {kir::i16, "short"},  {kir::u16, "ushort"}};

constexpr OpRow kOps[] = {
    {Op::abs, kir::f32, "fabs($a)"},
    {Op::abs, kir::f64, "fabs($a)"},
    {Op::floor, kir::none, "floor($a)"},
    {Op::round, kir::none, "rint($a)"},
    {Op::sqrt, kir::none, "sqrt($a)"},
    {Op::fma, kir::none, "fma($a, $b, $c)"},
    {Op::rem, kir::f32, "fmod($a, $b)"},
    {Op::rem, kir::f64, "fmod($a, $b)"},
    {Op::half_to_f32, kir::none, "tern_f32($a)"},
    {Op::f32_to_half, kir::none, "tern_half($a)"},
    {Op::barrier, kir::none, "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"},
    {Op::subgroup_add, kir::none, "sub_group_reduce_add($a)"},
    {Op::subgroup_min, kir::none, "sub_group_reduce_min($a)"},
    {Op::subgroup_max, kir::none, "sub_group_reduce_max($a)"},
};

std::string head(const Writer& w) {
  const kir::Kernel& k = w.kernel();
  std::string text = "#pragma OPENCL FP_CONTRACT OFF\n";
  if (w.uses(Op::half_to_f32) || w.uses(Op::f32_to_half)) text += kOpenclHalf;
  const OpenclArguments arguments = opencl_arguments(w);
  text += "__kernel __attribute__((reqd_work_group_size(" + std::to_string(k.lanes) + ", 1, 1))) void " + w.entry() +
          "(" + arguments.declared + ") {\n" + arguments.moved;
  text += "  const uint lane = (uint)get_local_id(0), group = (uint)get_group_id(0);\n";
  if (w.uses(Op::subgroup_id)) text += "  const uint subgroup_id = get_sub_group_id();\n";
  if (w.uses(Op::subgroup_lane)) text += "  const uint subgroup_lane = get_sub_group_local_id();\n";
  if (w.uses(Op::subgroup_count)) text += "  const uint subgroup_count = get_num_sub_groups();\n";
  for (size_t i = 0; i < k.arrays.size(); ++i)
    text += "  __local " + w.type(k.arrays[i].type) + " s" + std::to_string(i) + "[" +
            std::to_string(k.arrays[i].count) + "];\n";
  return text;
}

}  // namespace

constinit const std::string_view kOpenclHalf = R"(#ifndef TERN_HALF
#define TERN_HALF
static inline float tern_f32(uint bits) { ushort h = (ushort)bits; return vload_half(0, (const half*)&h); }
static inline uint tern_half(float x) { ushort h; vstore_half_rte(x, 0, (half*)&h); return h; }
#endif
)";

constinit const Dialect kOpenclDialect = {
    .name = "opencl",
    .types = kTypes,
    .ops = kOps,
    .saturate = "$a == $a ? convert_$t_sat($a) : ($t)0",  // drivers differ in what NaN gives
    .pointer = "__global $q$t*",
    .half_load = "vload_half($b, $a)",
    .half_store = "vstore_half_rte($c, $b, $a);",
    .reinterpret = "as_$t($a)",
    .tuple = "($t)($a)",
    .number = opencl_number,
    .head = head,
};

}  // namespace tern::emit
