// The kernel IR: one small program per specialisation, run by every lane of every workgroup.
//
// A kernel is data: nodes in structured statement lists. Leaves (constant, lane, group, dim, subgroup_*) stand in no
// list; every other node stands in exactly one list, once, and may be used behind it in that list and in lists inside
// it. There are only two control forms, `branch` (no result, no else) and `loop` (a half-open range with step 1,
// *bounds equal in all lanes of a workgroup by rule*), so uniformity is simple and a workgroup can be run as one
// vector. Mutable variables carry values round loops. Build kernels with builder.h; a kernel is built for known Caps
// and legal for those only (verify.h).
//
// Types. Values are b1, i32, u32, f32, and i64, u64, f64 where caps have them. f16, bf16, i8, u8, i16, u16 and b8 are
// *storage* types of views: a load yields f32 (f16), i32 (i8, i16) or u32 (u8, u16), a store narrows back (f16: round
// to nearest even; integers: the low bits). Views of bf16 and b8 are rewritten by the builder (to u16/u32 and u8/u32)
// and never reach an emitter, neither does a wide view of an element below 4 bytes.
//
// Meaning of the ops (operands a, b, c, d are nodes; "int" is i32 u32 i64 u64, "num" is int or float):
//   constant           imm: the bits, zero-extended to 64. b1: 0 or 1.
//   lane, group        u32: 0 .. lanes-1, and the linear workgroup id.        dim: u32, imm: index into Kernel::dims;
//   uniform. subgroup_id, _lane, _count   u32. On a lockstep device the subgroup is the workgroup. Which lanes form a
//   subgroup is unknown; ids
//                      are 0 .. count-1, and count is equal in all lanes of the workgroup.
//   neg abs            num. Integers wrap.
//   logic_not          b1.
//   floor round sqrt   float. round: half to even.  sqrt: correctly rounded where the device does so.
//   cast               num or b1 -> num. Integer to integer: low bits, sign-extended from signed sources. To float:
//   nearest even.
//                      Float to integer: toward zero, saturating, NaN gives 0. b1 gives 0 or 1. To b1: compare with 0
//                      instead.
//   bitcast            equal sizes, any of i32 u32 f32, or i64 u64 f64.
//   half_to_f32        u32 -> f32: the low 16 bits as binary16; high bits are ignored. f32_to_half: f32 -> u32 below
//   2^16, nearest even. add sub mul        num. Integers wrap; but *index arithmetic does not*: a u32 that ends in a
//   load's or store's index never wraps. div rem            num. Integers truncate toward zero; a zero divisor (or MIN
//   / -1) is the author's fault: the interpreter reports
//                      it, hardware may trap. Lanes that are off do not divide: an emitter that runs all lanes must
//                      guard. Float rem: fmod, never emitted by the builder (see math in builder.h).
//   min max            num. Floats: a < b ? a : b and a > b ? a : b, so b comes out when one is NaN; text dialects may
//   give the other one. bit_and or xor     int or b1.      shl shr: int by u32 below the width (the builder sees to
//   it); shr of signed types keeps the sign. lt le eq ne        num (eq, ne: b1 too) -> b1; ne is true and the others
//   false on NaN. fma                float, one rounding; emitted only where caps.fma.   select: a is b1, b when true
//   else c. dot4               i32 a + sum over the 4 bytes of u32 b, each below 2^caps.dot4_code_bits (7: 0..127),
//   times the signed bytes of u32 c; wraps. Where caps.dot4 is fast. lookup             u32 a: four bytes below 16; b,
//   c: u64 constants, entries 0..7 and 8..15 of a table, low byte first. Each byte of the result is the entry that the
//   byte of a names. Where caps.byte_lookup. tuple, part        tuple: `width` values of one
//   type (operands a..d), used by a wide store only. part: element imm of a wide load. load               imm: view, a:
//   u32 index *in elements of the view* (a wide element counts once). width > 1: used by `part` only. store imm: view,
//   a: index, b: value (a tuple when the view is wide). Type::none. prefetch   imm: view, a: u32
//   index: a hint that what lies there is read soon; may lie outside of the view, changes nothing. wg_load wg_store
//   imm: workgroup array, a: u32 index, (b: value). Arrays hold garbage at the start of a workgroup. var, get, set var:
//   a: first value. get: a: var. set: a: var, b: value. A var is private to its lane. branch             a: b1; body:
//   list. Lanes where a is false skip it. loop               a: lo, b: hi, both i32 or both u32, uniform; body. The
//   node itself is the index; runs while index < hi. barrier            all lanes arrive; orders workgroup and global
//   memory of this workgroup. Uniform control only. subgroup_add min max   f32, i32, u32 over the subgroup's lanes;
//   uniform control only. The order is fixed on lockstep devices and in the
//                      interpreter: with n lanes left and h = ceil(n / 2), lane i < n - h takes op(v[i], v[i + h]),
//                      then n = h.
//
// Memory. A view holds fewer than 2^32 elements. The byte size of every binding is a multiple of 4 and its address
// 4-aligned (16 for views 4 wide, 8 for 2 wide and for 8-byte types). Two bindings of one launch do not overlap where
// one of them is written. Workgroups run in any order and must not read what others write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/caps.h"
#include "tern/dtype.h"
#include "tern/result.h"

namespace tern::kir {

enum class Type : uint8_t { none, b1, i32, u32, f32, i64, u64, f64, f16, bf16, i8, u8, i16, u16, b8 };
inline constexpr int kTypeCount = 15;
using enum Type;

struct TypeInfo {
  std::string_view name;
  uint8_t bytes;  // in memory; b1 has none
  bool value;     // may be the type of a node
  bool is_float, is_signed;
  Type loaded;  // value type that a load of this storage type yields
};
const TypeInfo& type_info(Type type);
inline std::string_view type_name(Type t) { return type_info(t).name; }
inline uint32_t type_bytes(Type t) { return type_info(t).bytes; }
inline bool is_float(Type t) { return type_info(t).is_float; }
inline bool is_int(Type t) { return t == i32 || t == u32 || t == i64 || t == u64; }
inline bool is_signed(Type t) { return type_info(t).is_signed; }
inline bool is_wide64(Type t) { return t == i64 || t == u64 || t == f64; }
// The storage type of a tensor's elements; an error for types kir has no view of (f8, complex).
Result<Type> storage_type(DType dtype);
// The type in which a tensor's elements are computed: f16 -> f32, i8 -> i32, bool -> b1.
Result<Type> value_type(DType dtype);

enum class OpClass : uint8_t { leaf, pure, memory, var, control, group };
enum class Op : uint8_t {
#define TERN_KIR_OP(name, operands, cls) name,
#include "kir/ops.inc"
#undef TERN_KIR_OP
  count_
};
struct OpInfo {
  std::string_view name;
  uint8_t operands;  // nodes among a, b, c, d; `tuple` uses as many as it is wide
  OpClass cls;
};
const OpInfo& op_info(Op op);

using Ref = uint32_t;  // index into Kernel::nodes
inline constexpr uint32_t kNone = 0xffffffffu;

struct Node {
  Op op = Op::constant;
  Type type = Type::none;  // of the value; none: a statement without one
  uint8_t width = 1;       // values of a wide load or tuple: 1, 2 or 4
  Ref a = kNone, b = kNone, c = kNone, d = kNone;
  uint64_t imm = 0;       // constant bits, dim, view, array or part number: see the op
  uint32_t body = kNone;  // block of a branch or loop
  bool operator==(const Node&) const = default;
};

enum class Access : uint8_t { read, write, update };
std::string_view access_name(Access access);

// One buffer of the launch, in the order of the entry's `buffers`.
struct Binding {
  std::string name;
  Type type = f32;  // as declared; what the author means the buffer to hold
  uint8_t width = 1;
  Access access = Access::read;
  bool streaming =
      false;  // stores bypass the cache where that exists: outputs larger than the last level that are not read soon
  bool operator==(const Binding&) const = default;
};
// How a load or store looks at a binding. Several views may lie on one binding.
struct View {
  uint32_t binding = 0;
  Type type = f32;
  uint8_t width = 1;  // 1, 2 or 4 elements that are read or written together
  bool operator==(const View&) const = default;
};
// Memory shared by the lanes of a workgroup; value types of 4 or 8 bytes.
struct Array {
  std::string name;
  Type type = f32;
  uint32_t count = 0;
  bool operator==(const Array&) const = default;
};

inline bool has_view(const Node& n) { return n.op == Op::load || n.op == Op::store || n.op == Op::prefetch; }

inline constexpr uint32_t kNodeBudget = 400;  // statements; compilers take seconds on longer kernels

struct Kernel {
  std::string name;
  uint32_t lanes = 1;     // of a workgroup
  uint32_t subgroup = 0;  // size that the device must give (caps.subgroup.can_pin); 0: any
  uint32_t node_budget = kNodeBudget;
  std::vector<Binding> bindings;
  std::vector<View> views;
  std::vector<std::string> dims;  // u32 scalars, in the order of the entry's `dims`
  std::vector<Array> arrays;
  std::vector<Node> nodes;
  std::vector<std::vector<Ref>> blocks;  // statement lists; 0 is the kernel's
  bool operator==(const Kernel&) const = default;

  const Node& at(Ref ref) const { return nodes[ref]; }
  uint32_t statements() const;
  // Index of a named dim or binding, kNone if there is none.
  uint32_t dim(std::string_view name) const;
  uint32_t binding(std::string_view name) const;
};

// Calls f(operand) for each operand of a node, in order.
template <class F>
void each_operand(const Node& n, F&& f) {
  const int count = n.op == Op::tuple ? n.width : op_info(n.op).operands;
  const Ref all[4] = {n.a, n.b, n.c, n.d};
  for (int i = 0; i < count; ++i) f(all[i]);
}

// The entry of a kernel compiled for the CPU: runs groups [group0, group1). buffers: one address per binding; dims: one
// word per name of Kernel::dims. The interpreter (interp.h) takes the same and checks sizes.
using CpuEntry = void (*)(void* const* buffers, const uint32_t* dims, uint32_t group0, uint32_t group1);

}  // namespace tern::kir
