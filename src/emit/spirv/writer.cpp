#include "emit/spirv/writer.h"

#include <algorithm>
#include <utility>

#include "emit/entry.h"

namespace tern::emit {

using namespace spv;
using kir::type_bytes;

namespace {

// What every driver has room for in push constants, less the number of the first group.
constexpr size_t kMostDims = 128 / 4 - 1;

bool uses(const kir::Kernel& k, kir::Op op) {
  return std::any_of(k.nodes.begin(), k.nodes.end(), [&](const kir::Node& n) { return n.op == op; });
}

}  // namespace

Result<KernelSpirv> SpirvWriter::write() {
  if (!caps_.language.starts_with("spirv"))
    return make_error(Code::unsupported, "kernels are not written as SPIR-V for '" + caps_.language + "'");
  if (k_.dims.size() > kMostDims) {
    return make_error(Code::limit,
                      "a kernel has " + std::to_string(k_.dims.size()) + " sizes; push constants have room for " +
                          std::to_string(kMostDims),
                      "kernel " + k_.name);
  }
  const Id entry = m_.fresh();
  features();
  m_.mode(entry, LocalSize, {k_.lanes, 1, 1});
  if (feature("float_controls")) {
    m_.capability(SignedZeroInfNanPreserve);
    m_.extension("SPV_KHR_float_controls");
    m_.mode(entry, PreserveSignedZeroInfNan, {32});
  }
  declare_bindings();
  declare_arrays();
  declare_dims();
  declare_leaves();
  find_shared_fetches();
  block(0);
  if (error_) return *error_;
  const std::string name = entry_name(k_);
  return KernelSpirv{m_.finish(name, entry, inputs_), name, k_.lanes};
}

bool SpirvWriter::feature(std::string_view name) const {
  const std::string all = caps_.language + "+";
  return all.find("+" + std::string(name) + "+") != std::string::npos;
}

void SpirvWriter::refuse(Ref r, std::string_view why) {
  if (error_) return;
  error_ = make_error(
      Code::unsupported, "SPIR-V " + std::string(why),
      "kernel " + k_.name + ", node " + std::to_string(r) + " (" + std::string(kir::op_info(at(r).op).name) + ")");
}

// ---- types and constants

SpirvWriter::Id SpirvWriter::integer(uint32_t bits) { return m_.global(OpTypeInt, 0, {bits, 0}); }
SpirvWriter::Id SpirvWriter::real(uint32_t bits) { return m_.global(OpTypeFloat, 0, {bits}); }

// Of a value, or of an element of storage. Halves are stored as their bits.
SpirvWriter::Id SpirvWriter::type(Type t) {
  if (t == kir::b1) return boolean();
  const bool wide_real = t == kir::f32 || t == kir::f64;
  return wide_real ? real(type_bytes(t) * 8) : integer(type_bytes(t) * 8);
}

SpirvWriter::Id SpirvWriter::number(Type t, uint64_t bits) {
  if (t == kir::b1) return m_.global(bits != 0 ? OpConstantTrue : OpConstantFalse, type(t), {});
  const auto low = static_cast<uint32_t>(bits);
  if (type_bytes(t) == 8) return m_.global(OpConstant, type(t), {low, static_cast<uint32_t>(bits >> 32)});
  return m_.global(OpConstant, type(t), {low});
}

// ---- what stands before the first statement

void SpirvWriter::features() {
  m_.capability(Shader);
  const auto any = [&](auto holds) {
    return std::any_of(k_.nodes.begin(), k_.nodes.end(), [&](const Node& n) { return holds(n.type); }) ||
           std::any_of(k_.views.begin(), k_.views.end(),
                       [&](const kir::View& v) { return !is_texel(v) && holds(v.type); }) ||
           std::any_of(k_.arrays.begin(), k_.arrays.end(), [&](const kir::Array& a) { return holds(a.type); });
  };
  if (any([](Type t) { return t == kir::f64; })) m_.capability(Float64);
  if (any([](Type t) { return t == kir::i64 || t == kir::u64; })) m_.capability(Int64);
  if (any([](Type t) { return type_bytes(t) == 2; })) m_.capability(StorageBuffer16BitAccess);
  if (any([](Type t) { return type_bytes(t) == 1; })) {
    m_.capability(StorageBuffer8BitAccess);
    m_.extension("SPV_KHR_8bit_storage");
  }
  m_.extended_instructions();
}

// A struct that holds nothing but an array without end.
SpirvWriter::Id SpirvWriter::block_of(Id element, uint32_t stride) {
  const auto [place, added] = blocks_.emplace(element, 0);
  if (!added) return place->second;
  const Id array = m_.distinct_type(OpTypeRuntimeArray, {element});
  m_.decorate(array, ArrayStride, {stride});
  const Id all = m_.distinct_type(OpTypeStruct, {array});
  m_.decorate(all, Block);
  m_.decorate_member(all, 0, Offset, {0});
  return place->second = pointer(StorageBuffer, all);
}

// Every view is a variable of its own: those of one binding lie on one another.
void SpirvWriter::declare_bindings() {
  const bool barriers = uses(k_, Op::barrier);
  for (const kir::View& view : k_.views) {
    const uint32_t bytes = view.width * type_bytes(view.type);
    if (is_texel(view)) {
      views_.push_back(declare_texels(view));
      continue;
    }
    const Id one = type(view.type), element = view.width == 1 ? one : vector(one, view.width);
    const Id id = m_.variable(block_of(element, bytes), StorageBuffer);
    m_.decorate(id, DescriptorSet, {0});
    m_.decorate(id, BindingNumber, {view.binding});
    const kir::Access access = k_.bindings[view.binding].access;
    if (access == kir::Access::read) m_.decorate(id, NonWritable);
    const auto twin = [&](const kir::View& v) { return v.binding == view.binding; };
    if (access != kir::Access::read && std::count_if(k_.views.begin(), k_.views.end(), twin) > 1)
      m_.decorate(id, Aliased);
    if (access == kir::Access::update && barriers) m_.decorate(id, Coherent);
    views_.push_back(id);
  }
}

void SpirvWriter::declare_arrays() {
  for (const kir::Array& a : k_.arrays) {
    const Id array = m_.global(OpTypeArray, 0, {type(a.type), word(a.count)});
    arrays_.push_back(m_.variable(pointer(Workgroup, array), Workgroup));
  }
}

void SpirvWriter::declare_dims() {
  SpirvModule::Words members(k_.dims.size() + 1, word());
  const Id all = m_.global(OpTypeStruct, 0, members);
  m_.decorate(all, Block);
  for (uint32_t i = 0; i < members.size(); ++i) m_.decorate_member(all, i, Offset, {i * 4});
  const Id block = m_.variable(pointer(PushConstant, all), PushConstant), one = pointer(PushConstant, word());
  for (uint32_t i = 0; i < members.size(); ++i) {
    const Id v = m_.result(OpLoad, word(), {m_.result(OpAccessChain, one, {block, word(i)})});
    if (i == 0)
      first_group_ = v;
    else
      dims_.push_back(v);
  }
}

// Each is read once, before all else.
SpirvWriter::Id SpirvWriter::built_in(BuiltInName name, Id type) {
  const auto [place, added] = built_ins_.emplace(name, 0);
  if (!added) return place->second;
  if (name != LocalInvocationIndex && name != WorkgroupId) m_.capability(GroupNonUniform);
  const Id id = m_.variable(pointer(Input, type), Input);
  m_.decorate(id, BuiltIn, {name});
  inputs_.push_back(id);
  return place->second = m_.result(OpLoad, type, {id});
}

// Leaves stand in no list.
void SpirvWriter::declare_leaves() {
  Id group = 0;
  for (Ref r = 0; r < k_.nodes.size(); ++r) {
    const Node& n = k_.nodes[r];
    switch (n.op) {
      case Op::constant: ids_[r] = number(n.type, n.imm); break;
      case Op::dim: ids_[r] = dims_[n.imm]; break;
      case Op::lane: ids_[r] = built_in(LocalInvocationIndex, word()); break;
      case Op::subgroup_id: ids_[r] = built_in(SubgroupId, word()); break;
      case Op::subgroup_lane: ids_[r] = built_in(SubgroupLocalInvocationId, word()); break;
      case Op::subgroup_count: ids_[r] = built_in(NumSubgroups, word()); break;
      case Op::group:
        if (group == 0) {
          const Id all = built_in(WorkgroupId, vector(word(), 3));
          group = words(OpIAdd, m_.result(OpCompositeExtract, word(), {all, 0}), first_group_);
        }
        ids_[r] = group;
        break;
      default: break;
    }
  }
}

// ---- statements

void SpirvWriter::block(uint32_t index) {
  const uint32_t outer = std::exchange(block_, index);
  const size_t before = fetches_.size();
  if (feature("texels")) fetch_early(index);
  for (const Ref r : k_.blocks[index]) {
    if (early_[r] == 0) statement(r);
  }
  fetches_.resize(before);
  block_ = outer;
}

void SpirvWriter::statement(Ref r) {
  const Node& n = at(r);
  switch (kir::op_info(n.op).cls) {
    case kir::OpClass::leaf: return;
    case kir::OpClass::memory: return memory(r);
    case kir::OpClass::var: return variable(r);
    case kir::OpClass::control: return n.op == Op::branch ? branch(n) : loop(r);
    case kir::OpClass::group:
      if (n.op == Op::barrier) {
        const Id scope = word(ScopeWorkgroup);
        return m_.statement(OpControlBarrier, {scope, scope, word(kBarrierSemantics)});
      }
      ids_[r] = together(n);
      return;
    case kir::OpClass::pure: ids_[r] = pure(r); return;
  }
}

void SpirvWriter::branch(const Node& n) {
  const Id body = m_.fresh(), after = m_.fresh();
  m_.statement(OpSelectionMerge, {after, 0});
  m_.statement(OpBranchConditional, {value(n.a), body, after});
  label(body);
  block(n.body);
  jump(after);
  label(after);
}

void SpirvWriter::loop(Ref r) {
  const Node& n = at(r);
  const Id head = m_.fresh(), test = m_.fresh(), body = m_.fresh(), next = m_.fresh(), after = m_.fresh();
  const Id t = type(n.type), place = m_.variable(pointer(Function, t), Function);
  m_.statement(OpStore, {place, value(n.a)});
  jump(head);
  label(head);
  m_.statement(OpLoopMerge, {after, next, 0});
  jump(test);
  label(test);
  ids_[r] = m_.result(OpLoad, t, {place});
  const Id more = truth(n.type == kir::i32 ? OpSLessThan : OpULessThan, ids_[r], value(n.b));
  m_.statement(OpBranchConditional, {more, body, after});
  label(body);
  block(n.body);
  jump(next);
  label(next);
  m_.statement(OpStore, {place, words_by(OpIAdd, ids_[r], 1)});
  jump(head);
  label(after);
}

void SpirvWriter::variable(Ref r) {
  const Node& n = at(r);
  if (n.op == Op::get) {
    ids_[r] = m_.result(OpLoad, type(n.type), {value(n.a)});
    return;
  }
  if (n.op == Op::set) return m_.statement(OpStore, {value(n.a), value(n.b)});
  ids_[r] = m_.variable(pointer(Function, type(n.type)), Function);
  m_.statement(OpStore, {ids_[r], value(n.a)});
}

void SpirvWriter::memory(Ref r) {
  const Node& n = at(r);
  switch (n.op) {
    case Op::load: ids_[r] = is_texel(k_.views[n.imm]) ? fetched(n) : loaded(n); return;
    case Op::store: return store(n, element(n));
    case Op::wg_load:
    case Op::wg_store: {
      const Id one = pointer(Workgroup, type(k_.arrays[n.imm].type));
      const Id place = m_.result(OpAccessChain, one, {arrays_[n.imm], value(n.a)});
      if (n.op == Op::wg_store) return m_.statement(OpStore, {place, value(n.b)});
      ids_[r] = m_.result(OpLoad, type(n.type), {place});
      return;
    }
    default: return;  // a prefetch is a hint
  }
}

SpirvWriter::Id SpirvWriter::element(const Node& n) {
  const kir::View& view = k_.views[n.imm];
  const Id one = type(view.type), all = view.width == 1 ? one : vector(one, view.width);
  return m_.result(OpAccessChain, pointer(StorageBuffer, all), {views_[n.imm], word(0), value(n.a)});
}

SpirvWriter::Id SpirvWriter::loaded(const Node& n) {
  const kir::View& view = k_.views[n.imm];
  const Id one = type(view.type);
  const Id raw = m_.result(OpLoad, view.width == 1 ? one : vector(one, view.width), {element(n)});
  if (type_bytes(view.type) >= 4) return raw;
  const Id wide =
      m_.result(kir::is_signed(view.type) && view.type != kir::f16 ? OpSConvert : OpUConvert, word(), {raw});
  return view.type == kir::f16 ? half_to_f32(wide) : wide;
}

void SpirvWriter::store(const Node& n, Id pointer) {
  const kir::View& view = k_.views[n.imm];
  Id v = value(n.b);
  if (view.type == kir::f16) v = f32_to_half(v);
  if (type_bytes(view.type) < 4) v = m_.result(OpUConvert, type(view.type), {v});
  m_.statement(OpStore, {pointer, v});
}

// Over the lanes of a subgroup.
SpirvWriter::Id SpirvWriter::together(const Node& n) {
  constexpr uint32_t kReduce = 0;
  m_.capability(GroupNonUniform);
  m_.capability(GroupNonUniformArithmetic);
  const bool real = n.type == kir::f32, plus = n.type == kir::u32;
  const spv::Op op = n.op == Op::subgroup_add   ? (real ? OpGroupNonUniformFAdd : OpGroupNonUniformIAdd)
                     : n.op == Op::subgroup_min ? (real   ? OpGroupNonUniformFMin
                                                   : plus ? OpGroupNonUniformUMin
                                                          : OpGroupNonUniformSMin)
                     : real                     ? OpGroupNonUniformFMax
                     : plus                     ? OpGroupNonUniformUMax
                                                : OpGroupNonUniformSMax;
  return m_.result(op, type(n.type), {word(ScopeSubgroup), kReduce, value(n.a)});
}

}  // namespace tern::emit

namespace tern {

Result<KernelSpirv> emit_spirv(const kir::Kernel& kernel, const Caps& caps) {
  return emit::SpirvWriter(kernel, caps).write();
}

}  // namespace tern
