// The tables behind ir.h.
#include "kir/ir.h"

#include <array>

namespace tern::kir {

namespace {

constexpr std::array<TypeInfo, kTypeCount> kTypes = {{
    {"none", 0, false, false, false, Type::none},
    {"b1", 0, true, false, false, b1},
    {"i32", 4, true, false, true, i32},
    {"u32", 4, true, false, false, u32},
    {"f32", 4, true, true, true, f32},
    {"i64", 8, true, false, true, i64},
    {"u64", 8, true, false, false, u64},
    {"f64", 8, true, true, true, f64},
    {"f16", 2, false, true, true, f32},
    {"bf16", 2, false, true, true, f32},
    {"i8", 1, false, false, true, i32},
    {"u8", 1, false, false, false, u32},
    {"i16", 2, false, false, true, i32},
    {"u16", 2, false, false, false, u32},
    {"b8", 1, false, false, false, b1},
}};

constexpr OpInfo kOps[] = {
#define TERN_KIR_OP(name, operands, cls) {#name, operands, OpClass::cls},
#include "kir/ops.inc"
#undef TERN_KIR_OP
};

}  // namespace

const TypeInfo& type_info(Type type) { return kTypes[static_cast<size_t>(type)]; }
const OpInfo& op_info(Op op) { return kOps[static_cast<size_t>(op)]; }

std::string_view access_name(Access access) {
  constexpr std::string_view kNames[] = {"read", "write", "update"};
  return kNames[static_cast<size_t>(access)];
}

Result<Type> storage_type(DType dtype) {
  if (dtype == DType::boolean) return b8;
  const std::string_view name = dtype_name(dtype);
  for (int i = 1; i < kTypeCount; ++i) {
    const Type t = static_cast<Type>(i);
    if (t != b1 && t != b8 && type_name(t) == name) return t;
  }
  return make_error(Code::unsupported, "kernels have no view of " + std::string(name) + " elements");
}

Result<Type> value_type(DType dtype) {
  TERN_TRY(const Type storage, storage_type(dtype));
  return type_info(storage).loaded;
}

uint32_t Kernel::statements() const {
  size_t count = 0;
  for (const auto& block : blocks) count += block.size();
  return static_cast<uint32_t>(count);
}

uint32_t Kernel::dim(std::string_view wanted) const {
  for (uint32_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == wanted) return i;
  }
  return kNone;
}

uint32_t Kernel::binding(std::string_view wanted) const {
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    if (bindings[i].name == wanted) return i;
  }
  return kNone;
}

}  // namespace tern::kir
