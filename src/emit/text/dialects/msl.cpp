// The Metal Shading Language 2.1: a thread is a lane. Sizes lie in a buffer behind the bindings.
#include "emit/text/dialects/cxx.h"

namespace tern::emit {
namespace {

using kir::Op;

constexpr TypeRow kTypes[] = {{kir::b1, "bool"},  {kir::i32, "int"},   {kir::u32, "uint"},  {kir::f32, "float"},
                              {kir::i64, "long"}, {kir::u64, "ulong"}, {kir::f16, "half"},  {kir::i8, "char"},
                              {kir::u8, "uchar"}, {kir::i16, "short"}, {kir::u16, "ushort"}};

constexpr OpRow kOps[] = {
    {Op::abs, kir::f32, "fabs($a)"},
    {Op::floor, kir::none, "floor($a)"},
    {Op::round, kir::none, "rint($a)"},
    {Op::sqrt, kir::none, "precise::sqrt($a)"},
    {Op::fma, kir::none, "fma($a, $b, $c)"},
    {Op::half_to_f32, kir::none, "(float)as_type<half>((ushort)($a))"},
    {Op::f32_to_half, kir::none, "(uint)as_type<ushort>((half)($a))"},
    {Op::barrier, kir::none, "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);"},
    {Op::subgroup_add, kir::none, "simd_sum($a)"},
    {Op::subgroup_min, kir::none, "simd_min($a)"},
    {Op::subgroup_max, kir::none, "simd_max($a)"},
};

std::string number(kir::Type type, uint64_t bits) {
  if (type == kir::f32 && (bits & 0x7f800000u) == 0x7f800000u)
    return "as_type<float>(" + c_number(kir::u32, bits) + ")";
  return c_number(type, bits);
}

std::string head(const Writer& w) {
  const kir::Kernel& k = w.kernel();
  std::string text = cxx_prelude("inline", "#include <metal_stdlib>\nusing namespace metal;") +
                     "[[max_total_threads_per_threadgroup(" + std::to_string(k.lanes) + ")]] kernel void " + w.entry() +
                     "(";
  for (uint32_t i = 0; i < k.bindings.size(); ++i)
    text += w.pointer_to(i, w.type(w.storage(i).type)) + " p" + std::to_string(i) + " [[buffer(" + std::to_string(i) +
            ")]], ";
  text += "constant uint* dims [[buffer(" + std::to_string(k.bindings.size()) +
          ")]], uint lane [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]";
  if (w.uses(Op::subgroup_id)) text += ", uint subgroup_id [[simdgroup_index_in_threadgroup]]";
  if (w.uses(Op::subgroup_lane)) text += ", uint subgroup_lane [[thread_index_in_simdgroup]]";
  if (w.uses(Op::subgroup_count)) text += ", uint subgroup_count [[simdgroups_per_threadgroup]]";
  text += ") {\n#pragma clang fp contract(off)\n";
  for (size_t i = 0; i < k.dims.size(); ++i)
    text += "  const uint d" + std::to_string(i) + " = dims[" + std::to_string(i) + "];\n";
  return text + cxx_arrays(w, "threadgroup");
}

}  // namespace

constinit const Dialect kMslDialect = {
    .name = "msl",
    .types = kTypes,
    .ops = kOps,
    .saturate = "tern_cut<$t>($a)",
    .pointer = "device $q$t*",
    .half_load = "(float)$a[$b]",
    .half_store = "$a[$b] = (half)$c;",
    .reinterpret = "as_type<$t>($a)",
    .tuple = "$t($a)",
    .number = number,
    .head = head,
};

}  // namespace tern::emit
