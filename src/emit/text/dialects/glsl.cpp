// GLSL 4.50 for Vulkan: an invocation is a lane. Sizes, and behind them the number of groups, are push constants.
#include "emit/text/writer.h"

namespace tern::emit {
namespace {

using kir::Op;

constexpr TypeRow kTypes[] = {{kir::b1, "bool"}, {kir::i32, "int"}, {kir::u32, "uint"}, {kir::f32, "float"}};

constexpr OpRow kOps[] = {
    {Op::abs, kir::f32, "abs($a)"},
    {Op::rem, kir::i32, "tern_rem($a, $b)"},  // the language leaves % open where an operand is negative
    {Op::floor, kir::none, "floor($a)"},
    {Op::round, kir::none, "roundEven($a)"},
    {Op::sqrt, kir::none, "sqrt($a)"},
    {Op::fma, kir::none, "fma($a, $b, $c)"},
    {Op::half_to_f32, kir::none, "unpackHalf2x16($a).x"},
    {Op::f32_to_half, kir::none, "packHalf2x16(vec2($a, 0.0))"},
    {Op::barrier, kir::none, "memoryBarrierShared(); memoryBarrierBuffer(); barrier();"},
    {Op::subgroup_add, kir::none, "subgroupAdd($a)"},
    {Op::subgroup_min, kir::none, "subgroupMin($a)"},
    {Op::subgroup_max, kir::none, "subgroupMax($a)"},
};

constexpr std::string_view kPrelude = R"(uint as_uint(uint v) { return v; }
uint as_uint(int v) { return uint(v); }
uint as_uint(float v) { return floatBitsToUint(v); }
int as_int(uint v) { return int(v); }
int as_int(float v) { return floatBitsToInt(v); }
float as_float(uint v) { return uintBitsToFloat(v); }
float as_float(int v) { return intBitsToFloat(v); }
int tern_rem(int a, int b) { return a - a / b * b; }
int tern_int(float v) { return isnan(v) ? 0 : v >= 2147483648.0 ? 2147483647 : v < -2147483648.0 ? -2147483647 - 1 : int(v); }
uint tern_uint(float v) { return isnan(v) ? 0u : v >= 4294967296.0 ? 4294967295u : v <= 0.0 ? 0u : uint(v); }
)";

std::string number(kir::Type type, uint64_t bits) {
  if (type == kir::f32 && (bits & 0x7f800000u) == 0x7f800000u)
    return "uintBitsToFloat(" + c_number(kir::u32, bits) + ")";
  return c_number(type, bits);
}

std::string vector(std::string_view type, int width) {
  return (type == "uint" ? "uvec" : type == "int" ? "ivec" : "vec") + std::to_string(width);
}

std::string head(const Writer& w) {
  const kir::Kernel& k = w.kernel();
  const bool subgroups = w.uses_subgroups();
  std::string text = "#version 450\n";
  if (subgroups)
    text +=
        "#extension GL_KHR_shader_subgroup_basic : require\n#extension GL_KHR_shader_subgroup_arithmetic : require\n";
  text += "layout(local_size_x = " + std::to_string(k.lanes) + ") in;\n";
  for (uint32_t i = 0; i < k.bindings.size(); ++i) {
    const kir::View v = w.storage(i);
    const std::string n = std::to_string(i), type = v.width == 1 ? w.type(v.type) : vector(w.type(v.type), v.width);
    text += "layout(std430, binding = " + n + ") " + (k.bindings[i].access == kir::Access::read ? "readonly " : "") +
            "buffer B" + n + " { " + type + " b" + n + "[]; };\n";
  }
  text += "layout(push_constant) uniform Dims { ";
  for (size_t i = 0; i < k.dims.size(); ++i) text += "uint d" + std::to_string(i) + "; ";
  text += "uint groups; };\n";
  for (size_t i = 0; i < k.arrays.size(); ++i)
    text += "shared " + w.type(k.arrays[i].type) + " s" + std::to_string(i) + "[" + std::to_string(k.arrays[i].count) +
            "];\n";
  text += std::string(kPrelude) +
          "void main() {\n  const uint lane = gl_LocalInvocationID.x, group = gl_WorkGroupID.x + gl_WorkGroupID.y * "
          "gl_NumWorkGroups.x;\n  if (group >= groups) return;\n";
  if (subgroups)
    text +=
        "  const uint subgroup_id = gl_SubgroupID, subgroup_lane = gl_SubgroupInvocationID, subgroup_count = "
        "gl_NumSubgroups;\n";
  return text;
}

}  // namespace

constinit const Dialect kGlslDialect = {
    .name = "glsl",
    .types = kTypes,
    .ops = kOps,
    .cast = "$t($a)",
    .saturate = "tern_$t($a)",
    .constant = "precise $t $n = $a;",
    .variable = "precise $t $n = $a;",
    .reinterpret = "as_$t($a)",
    .tuple = "$t($a)",
    .signed_wraps = true,
    .vector = vector,
    .number = number,
    .head = head,
};

}  // namespace tern::emit
