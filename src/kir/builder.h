// Writing kernels. Ordinary C++ runs once per specialisation: host `if` and `for` vanish, `If` and `For` remain in the
// kernel.
//
//   Result<Kernel> scale(const Caps& caps, uint32_t lanes) {
//     B b("scale", lanes, caps);
//     Buffer x = buffer("x", f32), y = buffer("y", f32, write);
//     V n = dim("n"), i = group() * lanes + lane();
//     If(i < n, [&] { y.store(i, x[i] * 2.f); });
//     return b.finish();
//   }
//
// The B that was made last on this thread is the one that the free functions write into. Its first error sticks; later
// calls are harmless, and finish() returns it, or the verified kernel. The builder folds constants, +0, x1 and shifts,
// numbers pure values and loads of read-only bindings per scope, and writes what the caps lack in terms of what they
// have (legalising); it does not unroll, hoist or reorder. Not thread-safe; any number of threads may build side by
// side.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kir/ir.h"

namespace tern::kir {

// (In code outside namespace tern, POSIX's read and write hide these: say Access::write there.)
inline constexpr Access read = Access::read, write = Access::write, update = Access::update;

// A value of the kernel, or a number of the host that takes the type of what it meets: an integer becomes any number
// type, a floating one f32 or f64. Two kernel values mix only if their types are equal; cast() converts.
class V {
 public:
  V() = default;  // no value; using it is an error of the kernel
  template <std::integral T>
  V(T v) : kind_(std::same_as<T, bool> ? Kind::boolean : Kind::integer), int_(static_cast<int64_t>(v)) {}
  template <std::floating_point T>
  V(T v) : kind_(Kind::real), real_(v) {}

  bool valid() const { return kind_ != Kind::empty; }
  bool literal() const { return kind_ == Kind::integer || kind_ == Kind::real; }
  Type type() const { return type_; }  // none for a number of the host
  Ref ref() const { return ref_; }

 private:
  friend class B;
  enum class Kind : uint8_t { empty, node, boolean, integer, real };
  Kind kind_ = Kind::empty;
  Type type_ = Type::none;
  Ref ref_ = kNone;
  union {
    int64_t int_ = 0;
    double real_;
  };
};

// A mutable variable of each lane. Copies name the same variable.
class Var {
 public:
  V get() const;
  void set(const V& value) const;
  operator V() const { return get(); }
  Type type() const { return type_; }

 private:
  friend class B;
  Type type_ = Type::none;
  Ref ref_ = kNone;
};

// The elements of one wide load.
class Parts {
 public:
  const V& operator[](int i) const { return v_[i]; }
  int width() const { return width_; }

 private:
  friend class Buffer;
  std::array<V, 4> v_;
  int width_ = 0;
};

// A view of a binding. Indices are u32 and count elements of the view; a wide element counts once.
class Buffer {
 public:
  V operator[](const V& index) const;                           // width 1
  Parts load(const V& index) const;                             // any width
  void store(const V& index, const V& value) const;             // width 1
  void store(const V& index, std::span<const V> values) const;  // as many as the view is wide
  void store(const V& index, std::initializer_list<V> values) const {
    store(index, std::span(values.begin(), values.size()));
  }
  // A hint that the lanes will read around this (uniform) element soon; nothing where memory is not cached by
  // addresses (caps.lockstep tells). It may lie outside.
  void prefetch(const V& index) const;
  // Another view of the same binding, at element 0 of it: the offset of this view is dropped.
  Buffer as(Type type, int width = 1) const;
  // This view, `elements` (uniform) further on: windows whose start no binding offset can express.
  Buffer at(const V& elements) const;
  Type type() const { return type_; }
  int width() const { return width_; }

 private:
  friend class B;
  uint32_t binding_ = kNone;
  Type type_ = Type::none;
  uint8_t width_ = 1;
  V offset_;
};

// Memory of the workgroup.
class Shared {
 public:
  V operator[](const V& index) const;
  void store(const V& index, const V& value) const;
  uint32_t count() const { return count_; }

 private:
  friend class B;
  uint32_t array_ = kNone, count_ = 0;
  Type type_ = Type::none;
};

struct BufferOptions {
  int width = 1;
  bool streaming = false;
};

class B {
 public:
  B(std::string name, uint32_t lanes, const Caps& caps);
  ~B();
  B(const B&) = delete;
  B& operator=(const B&) = delete;
  static B& current();

  const Caps& caps() const;
  uint32_t lanes() const;
  const Kernel& kernel() const;  // as far as it is written
  void node_budget(uint32_t statements);
  // The first error, or the verified kernel. Call once.
  Result<Kernel> finish();

  void fail(std::string why);
  bool failed() const;

  Buffer buffer(std::string_view name, Type type, Access access = read, BufferOptions options = {});
  Shared shared(std::string_view name, Type type, uint32_t count);
  V dim(std::string_view name);  // u32; the same name gives the same dim
  Var var(Type type, const V& first);
  void If(const V& cond, const std::function<void()>& then);
  void For(const V& lo, const V& hi, const std::function<void(V)>& body);
  void barrier();

  // For the rest of this room: a node as it is, folded and numbered; operands must have types already.
  V emit(Op op, Type type, const V& a = {}, const V& b = {}, const V& c = {}, uint64_t imm = 0);
  V leaf(Op op, uint64_t imm = 0);
  V constant(Type type, uint64_t bits);
  // A number of the host as a value of `type`; values pass if their type is `type`, else the kernel fails.
  V typed(const V& v, Type type);
  // Both operands in one type, taken from whichever is not a host number; two host integers become i32, reals f32.
  Type unify(V& a, V& b, std::string_view what);
  // The folded constant's bits, if the value is one.
  bool constant_bits(const V& v, uint64_t* bits) const;
  V reduce(Op subgroup_op, const V& v);       // wg_add, wg_max, wg_min
  Shared scratch(Type type, uint32_t count);  // of the reductions: free before and after each of them
  uint32_t subgroup_size();                   // the one size that is sure (lockstep: the workgroup); 0: not known

 private:
  friend class V;
  friend class Var;
  friend class Buffer;
  friend class Shared;
  struct State;
  V value(Ref ref, Type type) const;
  V operand(const V& v);
  Ref push(const Node& node);
  std::unique_ptr<State> s_;
};

// ---- into the current builder
inline Buffer buffer(std::string_view name, Type type, Access access = read, BufferOptions options = {}) {
  return B::current().buffer(name, type, access, options);
}
inline Shared shared(std::string_view name, Type type, uint32_t count) {
  return B::current().shared(name, type, count);
}
inline V dim(std::string_view name) { return B::current().dim(name); }
V dim_f32(std::string_view name);  // a dim that carries the bits of an f32
V dim_i32(std::string_view name);
V lane();
V group();
V subgroup_id();
V subgroup_lane();
V subgroup_count();
V constant(Type type, double value);  // a typed constant; integers up to 2^53
Var var(const V& first);              // host integers: i32, reals: f32
Var var(Type type, const V& first);
std::vector<Var> vars(int count, const V& first);  // each its own
void If(const V& cond, const std::function<void()>& then);
void If(const V& cond, const std::function<void()>& then, const std::function<void()>& otherwise);
void For(const V& lo, const V& hi, const std::function<void(V)>& body);  // host bounds: u32
void barrier();

// ---- operators. Comparisons give b1; & | ^ ! && || take b1 too (&& and || evaluate both sides).
V operator+(const V& a, const V& b);
V operator-(const V& a, const V& b);
V operator*(const V& a, const V& b);
V operator/(const V& a, const V& b);
V operator%(const V& a, const V& b);  // integers
V operator&(const V& a, const V& b);
V operator|(const V& a, const V& b);
V operator^(const V& a, const V& b);
V operator<<(const V& a, const V& count);  // count modulo the width
V operator>>(const V& a, const V& count);
V operator<(const V& a, const V& b);
V operator<=(const V& a, const V& b);
V operator>(const V& a, const V& b);
V operator>=(const V& a, const V& b);
V operator==(const V& a, const V& b);
V operator!=(const V& a, const V& b);
V operator&&(const V& a, const V& b);
V operator||(const V& a, const V& b);
V operator-(const V& a);
V operator!(const V& a);  // b1
V operator~(const V& a);  // integers

// ---- functions
V select(const V& cond, const V& when_true, const V& when_false);
V min(const V& a, const V& b);  // floats: see ir.h about NaN
V max(const V& a, const V& b);
V clamp(const V& v, const V& lo, const V& hi);
V abs(const V& a);
V fma(const V& a, const V& b, const V& c);  // a * b + c; one rounding where caps.fma, else two
V cast(Type to, const V& a);                // to b1: a != 0
V bitcast(Type to, const V& a);
V half_to_f32(const V& bits);  // low 16 bits of a u32
V f32_to_half(const V& value);
V bf16_to_f32(const V& bits);  // low 16 bits of a u32
V f32_to_bf16(const V& value);
// Four entries of a table at once: byte by byte the entry that the byte of `indices` (u32, each below 16) names.
V lookup4(const V& indices, const std::array<uint8_t, 16>& table);
V dot4(const V& acc, const V& codes,
       const V& acts);             // acc (i32) + four codes below 2^caps.dot4_code_bits times four signed bytes
V mul_hi(const V& a, const V& b);  // high 32 bits of a u32 product
V floor(const V& a);
V ceil(const V& a);
V trunc(const V& a);
V round(const V& a);  // half to even
V sqrt(const V& a);
V sign_extend(const V& a, int bits);  // i32: the low bits as a signed number
V sum(std::span<const Var> vars);     // upper half onto lower half until one is left
V sum(std::span<const V> values);

// ---- the same polynomials on every device (math.cpp states the error of each, measured against f64); f32, and f64
// where said so.
V exp(const V& a);
V exp2(const V& a);
V log(const V& a);
V log2(const V& a);
V sin(const V& a);
V cos(const V& a);
V tanh(const V& a);
V erf(const V& a);
V pow(const V& a, const V& b);
V atan2(const V& y, const V& x);
V fmod(const V& a, const V& b);
V sigmoid(const V& a);
V is_nan(const V& a);
V is_inf(const V& a);
V is_finite(const V& a);

// ---- over the lanes of the workgroup: the same result in all lanes. Uniform control only (they hold barriers). By
// caps one subgroup op, a slot per subgroup, or a tree in workgroup memory. Order: lockstep and tree are equal bit for
// bit (ir.h, subgroup_add).
V wg_add(const V& a);
V wg_max(const V& a);
V wg_min(const V& a);
V wg_broadcast(const V& a, const V& from_lane);
V wg_exclusive_add(const V& a);  // sum over the lanes before this one
V subgroup_add(const V& a);
V subgroup_max(const V& a);
V subgroup_min(const V& a);

// The same kernel, its statements in the order that finish() gives them for devices that are not lockstep: one for all
// compilers. For goldens.
Kernel in_one_order(Kernel kernel);

}  // namespace tern::kir
