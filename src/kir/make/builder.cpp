// The builder's state, leaves, variables and control.
#include "kir/builder.h"

#include <bit>

#include "base/check.h"
#include "kir/make/state.h"
#include "kir/verify.h"

namespace tern::kir {

namespace {
thread_local B* current_builder = nullptr;
}  // namespace

B::B(std::string name, uint32_t lanes, const Caps& caps) : s_(std::make_unique<State>()) {
  s_->caps = caps;
  s_->k.name = std::move(name);
  s_->k.lanes = lanes;
  s_->k.blocks.resize(1);
  s_->constant(u32, 0);  // node 0: what values of a failed kernel refer to
  s_->outer = current_builder;
  current_builder = this;
}

B::~B() {
  if (current_builder == this) current_builder = s_->outer;
}

B& B::current() {
  TERN_CHECK(current_builder != nullptr, "kernel values are made inside the life of a kir::B");
  return *current_builder;
}

const Caps& B::caps() const { return s_->caps; }
uint32_t B::lanes() const { return s_->k.lanes; }
const Kernel& B::kernel() const { return s_->k; }
void B::node_budget(uint32_t statements) { s_->k.node_budget = statements; }
bool B::failed() const { return s_->error.has_value(); }

void B::fail(std::string why) {
  if (!s_->error) s_->error = make_error(Code::invalid, std::move(why), "kernel " + s_->k.name);
}

Result<Kernel> B::finish() {
  if (s_->error) return *s_->error;
  // Machine code for a processor follows the order that was written: loads ahead of sums. Measured: the one order costs
  // a quarter of decode's speed there.
  sweep(s_->k, !s_->caps.lockstep);
  TERN_OK(verify(s_->k, s_->caps, {.strict = !s_->caps.lockstep}));
  return std::move(s_->k);
}

// ---- values

V B::value(Ref ref, Type type) const {
  V v;
  v.kind_ = V::Kind::node;
  v.type_ = type;
  v.ref_ = ref;
  return v;
}

V B::constant(Type type, uint64_t bits) { return value(s_->constant(type, bits), type); }

V B::leaf(Op op, uint64_t imm) {
  if (op == Op::lane && s_->k.lanes == 1) return constant(u32, 0);
  return value(s_->leaf({.op = op, .type = u32, .imm = imm}), u32);
}

V B::typed(const V& v, Type type) {
  switch (v.kind_) {
    case V::Kind::empty: fail("a value that was never set is used as " + std::string(type_name(type))); break;
    case V::Kind::node:
      if (v.type_ == type) return v;
      fail(std::string(type_name(v.type_)) + " stands where " + std::string(type_name(type)) + " is wanted; cast it");
      break;
    case V::Kind::boolean:
      if (type == b1) return constant(b1, v.int_ != 0);
      fail("a host bool stands where " + std::string(type_name(type)) + " is wanted");
      break;
    case V::Kind::integer:
      if (type == f32) return constant(f32, std::bit_cast<uint32_t>(static_cast<float>(v.int_)));
      if (type == f64) return constant(f64, std::bit_cast<uint64_t>(static_cast<double>(v.int_)));
      if (is_wide64(type)) return constant(type, static_cast<uint64_t>(v.int_));
      if (is_int(type) && v.int_ >= INT32_MIN && v.int_ <= int64_t{UINT32_MAX})
        return constant(type, static_cast<uint32_t>(v.int_));
      fail("the host integer " + std::to_string(v.int_) + " is no " + std::string(type_name(type)));
      break;
    case V::Kind::real:
      if (type == f32) return constant(f32, std::bit_cast<uint32_t>(static_cast<float>(v.real_)));
      if (type == f64) return constant(f64, std::bit_cast<uint64_t>(v.real_));
      fail("the host number " + std::to_string(v.real_) + " is no " + std::string(type_name(type)));
      break;
  }
  return value(0, type == Type::none ? f32 : type);
}

V B::operand(const V& v) {
  switch (v.kind_) {
    case V::Kind::node: return v;
    case V::Kind::boolean: return typed(v, b1);
    case V::Kind::real: return typed(v, f32);
    case V::Kind::integer: return typed(v, i32);
    case V::Kind::empty: break;
  }
  return typed(v, f32);
}

Type B::unify(V& a, V& b, std::string_view what) {
  Type type = Type::none;
  if (a.kind_ == V::Kind::node || b.kind_ == V::Kind::node) {
    type = a.kind_ == V::Kind::node ? a.type_ : b.type_;
    if (a.kind_ == V::Kind::node && b.kind_ == V::Kind::node && a.type_ != b.type_) {
      fail(std::string(type_name(a.type_)) + " " + std::string(what) + " " + std::string(type_name(b.type_)) +
           ": the types differ; cast one");
      b = value(0, type);
    }
  } else if (a.kind_ == V::Kind::boolean || b.kind_ == V::Kind::boolean) {
    type = b1;
  } else {
    type = a.kind_ == V::Kind::real || b.kind_ == V::Kind::real ? f32 : i32;
  }
  a = typed(a, type);
  b = typed(b, type);
  return type;
}

bool B::constant_bits(const V& v, uint64_t* bits) const {
  if (v.kind_ != V::Kind::node) return false;
  const auto known = s_->bits(v.ref_);
  if (known) *bits = *known;
  return known.has_value();
}

V B::emit(Op op, Type type, const V& a, const V& b, const V& c, uint64_t imm) {
  if (failed()) return value(0, type == Type::none ? f32 : type);
  const auto ref = [](const V& v) { return v.kind_ == V::Kind::node ? v.ref_ : kNone; };
  const Node node{.op = op, .type = type, .a = ref(a), .b = ref(b), .c = ref(c), .imm = imm};
  const OpClass cls = op_info(op).cls;
  if (cls == OpClass::pure) return value(s_->pure(node), type);
  // Nobody writes a read-only binding, so its loads are values like any other.
  if (op == Op::load && s_->k.bindings[s_->k.views[imm].binding].access == Access::read)
    return value(s_->numbered(node), type);
  return value(s_->append(node), type);
}

// ---- declarations

V B::dim(std::string_view name) {
  uint32_t index = s_->k.dim(name);
  if (index == kNone) {
    index = static_cast<uint32_t>(s_->k.dims.size());
    s_->k.dims.emplace_back(name);
  }
  return leaf(Op::dim, index);
}

Var B::var(Type type, const V& first) {
  Var v;
  v.type_ = type;
  v.ref_ = emit(Op::var, type, typed(first, type)).ref();
  return v;
}

V Var::get() const {
  B& b = B::current();
  if (ref_ == kNone) return b.typed(V(), f32);
  return b.emit(Op::get, type_, b.value(ref_, type_));
}

void Var::set(const V& value) const {
  B& b = B::current();
  if (ref_ == kNone) {
    b.fail("a Var that was never made is set");
    return;
  }
  const V v = b.typed(value, type_);
  b.emit(Op::set, Type::none, b.value(ref_, type_), v);
}

// ---- control

namespace {

// Runs `body` into a new block under the statement `ref`.
template <class State, class F>
void nested(State& s, Ref ref, F&& body) {
  const uint32_t block = static_cast<uint32_t>(s.k.blocks.size());
  s.k.nodes[ref].body = block;
  s.k.blocks.emplace_back();
  s.open.push_back(block);
  s.numbers.emplace_back();
  body();
  s.numbers.pop_back();
  s.open.pop_back();
}

}  // namespace

void B::If(const V& cond, const std::function<void()>& then) {
  const V c = typed(cond, b1);
  uint64_t known = 0;
  if (failed()) return then();
  if (constant_bits(c, &known)) {
    if (known) then();
    return;
  }
  nested(*s_, s_->append({.op = Op::branch, .a = c.ref()}), then);
}

void B::For(const V& lo, const V& hi, const std::function<void(V)>& body) {
  V from = lo, to = hi;
  if (from.literal() && to.literal()) from = typed(from, u32);
  const Type type = unify(from, to, "to");
  if (type != i32 && type != u32) fail("a loop over " + std::string(type_name(type)) + "; bounds are i32 or u32");
  if (failed()) return body(value(0, u32));
  uint64_t first = 0, last = 0;
  if (constant_bits(from, &first) && constant_bits(to, &last)) {
    const int64_t trips =
        type == u32 ? int64_t(last) - int64_t(first) : int64_t(int32_t(last)) - int64_t(int32_t(first));
    if (trips == 1) body(from);
    if (trips <= 1) return;
  }
  const Ref loop = s_->append({.op = Op::loop, .type = type, .a = from.ref(), .b = to.ref()});
  nested(*s_, loop, [&] { body(value(loop, type)); });
}

void B::barrier() { emit(Op::barrier, Type::none); }

// ---- free functions

V dim_f32(std::string_view name) { return bitcast(f32, dim(name)); }
V dim_i32(std::string_view name) { return bitcast(i32, dim(name)); }
V lane() { return B::current().leaf(Op::lane); }
V group() { return B::current().leaf(Op::group); }
V subgroup_id() { return B::current().leaf(Op::subgroup_id); }
V subgroup_lane() { return B::current().leaf(Op::subgroup_lane); }
V subgroup_count() { return B::current().leaf(Op::subgroup_count); }

V constant(Type type, double value) {
  B& b = B::current();
  if (is_float(type)) return b.typed(V(value), type);
  if (value != static_cast<double>(static_cast<int64_t>(value)))
    b.fail("constant: " + std::to_string(value) + " is no integer");
  return b.typed(V(static_cast<int64_t>(value)), type);
}

Var var(const V& first) {
  B& b = B::current();
  V v = first, same = first;
  const Type type = b.unify(v, same, "and");
  return b.var(type, v);
}
Var var(Type type, const V& first) { return B::current().var(type, first); }

std::vector<Var> vars(int count, const V& first) {
  std::vector<Var> all;
  for (int i = 0; i < count; ++i) all.push_back(var(first));
  return all;
}

void If(const V& cond, const std::function<void()>& then) { B::current().If(cond, then); }
void If(const V& cond, const std::function<void()>& then, const std::function<void()>& otherwise) {
  const V c = cond;
  const V not_c = !c;  // before `then` may change what it was made of
  B::current().If(c, then);
  B::current().If(not_c, otherwise);
}
void For(const V& lo, const V& hi, const std::function<void(V)>& body) { B::current().For(lo, hi, body); }
void barrier() { B::current().barrier(); }

}  // namespace tern::kir
