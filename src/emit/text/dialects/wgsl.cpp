// WGSL: an invocation is a lane. Sizes, and behind them the number of groups, are a uniform block behind the bindings.
#include "emit/text/writer.h"

namespace tern::emit {
namespace {

using kir::Op;

constexpr TypeRow kTypes[] = {{kir::b1, "bool"}, {kir::i32, "i32"}, {kir::u32, "u32"}, {kir::f32, "f32"}};

constexpr OpRow kOps[] = {
    {Op::abs, kir::f32, "abs($a)"},
    {Op::floor, kir::none, "floor($a)"},
    {Op::round, kir::none, "round($a)"},
    {Op::sqrt, kir::none, "sqrt($a)"},
    {Op::fma, kir::none, "fma($a, $b, $c)"},
    {Op::half_to_f32, kir::none, "unpack2x16float($a).x"},
    {Op::f32_to_half, kir::none, "pack2x16float(vec2<f32>($a, 0.0))"},
    {Op::dot4, kir::none, "$a + dot4I8Packed($b, $c)"},
    {Op::barrier, kir::none, "storageBarrier(); workgroupBarrier();"},
    {Op::subgroup_add, kir::none, "subgroupAdd($a)"},
    {Op::subgroup_min, kir::none, "subgroupMin($a)"},
    {Op::subgroup_max, kir::none, "subgroupMax($a)"},
};

constexpr std::string_view kPrelude = R"(var<private> tern_zero: u32 = 0u;
fn tern_i32(v: f32) -> i32 { return select(select(select(i32(v), 2147483647, v >= 2147483648.0), i32(-2147483648), v < -2147483648.0), 0, v != v); }
fn tern_u32(v: f32) -> u32 { return select(select(select(u32(v), 4294967295u, v >= 4294967296.0), 0u, v <= 0.0), 0u, v != v); }
)";

// Constants that are no finite numbers are refused, so those are made at run time.
std::string number(kir::Type type, uint64_t bits) {
  if (type == kir::f32 && (bits & 0x7f800000u) == 0x7f800000u)
    return "bitcast<f32>(tern_zero | " + c_number(kir::u32, bits) + ")";
  if (type == kir::i32)
    return bits == 0x80000000u ? "i32(-2147483648)" : "(" + std::to_string(static_cast<int32_t>(bits)) + "i)";
  return c_number(type, bits);
}

std::string vector(std::string_view type, int width) {
  return "vec" + std::to_string(width) + "<" + std::string(type) + ">";
}

std::string head(const Writer& w) {
  const kir::Kernel& k = w.kernel();
  std::string text = "struct Dims { ";
  for (size_t i = 0; i < k.dims.size(); ++i) text += "d" + std::to_string(i) + ": u32, ";
  text += "groups: u32 }\n";
  for (uint32_t i = 0; i < k.bindings.size(); ++i) {
    const kir::View v = w.storage(i);
    const std::string n = std::to_string(i), type = v.width == 1 ? w.type(v.type) : vector(w.type(v.type), v.width);
    text += "@group(0) @binding(" + n + ") var<storage, " +
            (k.bindings[i].access == kir::Access::read ? "read" : "read_write") + "> b" + n + ": array<" + type +
            ">;\n";
  }
  text += "@group(0) @binding(" + std::to_string(k.bindings.size()) + ") var<uniform> dims: Dims;\n";
  for (size_t i = 0; i < k.arrays.size(); ++i)
    text += "var<workgroup> s" + std::to_string(i) + ": array<" + w.type(k.arrays[i].type) + ", " +
            std::to_string(k.arrays[i].count) + ">;\n";
  text += std::string(kPrelude) + "@compute @workgroup_size(" + std::to_string(k.lanes) + ") fn " + w.entry() +
          "(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) at: vec3<u32>, @builtin(num_workgroups) "
          "grid: vec3<u32>";
  if (w.uses(Op::subgroup_id)) text += ", @builtin(subgroup_id) subgroup_id: u32";
  if (w.uses(Op::subgroup_lane)) text += ", @builtin(subgroup_invocation_id) subgroup_lane: u32";
  if (w.uses(Op::subgroup_count)) text += ", @builtin(num_subgroups) subgroup_count: u32";
  text += ") {\n  let group = at.x + at.y * grid.x;\n  if (group >= dims.groups) { return; }\n";
  for (size_t i = 0; i < k.dims.size(); ++i)
    text += "  let d" + std::to_string(i) + " = dims.d" + std::to_string(i) + ";\n";
  return text;
}

}  // namespace

constinit const Dialect kWgslDialect = {
    .name = "wgsl",
    .types = kTypes,
    .ops = kOps,
    .cast = "$t($a)",
    .saturate = "tern_$t($a)",
    .select = "select($c, $b, $a)",
    .constant = "let $n: $t = $a;",
    .variable = "var $n: $t = $a;",
    .loop = "for (var $n: $t = $a; $n < $b; $n++) {",
    .reinterpret = "bitcast<$t>($a)",
    .tuple = "$t($a)",
    .signed_wraps = true,
    .vector = vector,
    .number = number,
    .head = head,
};

}  // namespace tern::emit
