// Reading elements as texels, for drivers whose loads from storage buffers are slow.
#include <algorithm>
#include <bit>

#include "emit/spirv/writer.h"

namespace tern::emit {

using namespace spv;
using kir::type_bytes;

namespace {

// Elements below a word come out of words: drivers' code for such texels is less tried.
uint32_t texel_number(const kir::View& view) {
  return view.binding * 8 + static_cast<uint32_t>(std::countr_zero(std::max(4u, view.width * type_bytes(view.type))));
}

}  // namespace

bool SpirvWriter::is_texel(const kir::View& view) const {
  return feature("texels") && k_.bindings[view.binding].access == kir::Access::read && type_bytes(view.type) <= 4;
}

SpirvWriter::Id SpirvWriter::declare_texels(const kir::View& view) {
  for (size_t i = 0; i < views_.size(); ++i) {  // of what is seen before
    if (is_texel(k_.views[i]) && texel_number(k_.views[i]) == texel_number(view)) return views_[i];
  }
  m_.capability(SampledBuffer);
  const Id id = m_.variable(pointer(UniformConstant, image()), UniformConstant);
  m_.decorate(id, DescriptorSet, {1});
  m_.decorate(id, BindingNumber, {texel_number(view)});
  return id;
}

// Four words, whatever it holds.
SpirvWriter::Id SpirvWriter::texel(const Node& n, Id index) {
  const Id where = m_.result(OpLoad, image(), {views_[n.imm]});
  return m_.result(OpImageFetch, vector(word(), 4), {where, index});
}

SpirvWriter::Id SpirvWriter::fetched(const Node& n) {
  const kir::View& view = k_.views[n.imm];
  const auto first = [&](Id all) { return m_.result(OpCompositeExtract, word(), {all, 0}); };
  if (view.width > 1) {  // parts are taken out of it
    const Id all = texel(n, value(n.a));
    return view.type == kir::f32 ? m_.result(OpBitcast, vector(real(32), 4), {all}) : all;
  }
  if (const uint32_t bytes = type_bytes(view.type); bytes < 4) {
    const uint32_t step = bytes == 2 ? 1 : 2, bits = 8 * bytes;
    const Id in_word = words_by(OpBitwiseAnd, value(n.a), (1u << step) - 1);
    const Id all = first(texel(n, words_by(OpShiftRightLogical, value(n.a), step)));
    const Id low = words(OpShiftRightLogical, all, words_by(OpIMul, in_word, bits));
    if (view.type == kir::f16) return half_to_f32(low);
    if (!kir::is_signed(view.type)) return words_by(OpBitwiseAnd, low, (1u << bits) - 1);
    return words_by(OpShiftRightArithmetic, words_by(OpShiftLeftLogical, low, 32 - bits), 32 - bits);
  }
  uint32_t lane = 0;
  const auto fetch = shared_fetch(n, block_, lane);
  const Id bits =
      fetch ? m_.result(OpGroupNonUniformBroadcast, word(), {word(ScopeSubgroup), fetch_once(n, *fetch), word(lane)})
            : first(texel(n, value(n.a)));
  return view.type == kir::f32 ? m_.result(OpBitcast, real(32), {bits}) : bits;
}

SpirvWriter::Id SpirvWriter::fetch_once(const Node& n, Fetch fetch) {
  for (const Fetch& f : fetches_) {
    if (f.alike(fetch)) return f.word;
  }
  const Id from = words_by(OpIAdd, value(fetch.base), fetch.chunk * caps_.subgroup.max);
  fetch.word = m_.result(OpCompositeExtract, word(), {texel(n, words(OpIAdd, from, subgroup_lane_)), 0});
  fetches_.push_back(fetch);
  return fetch.word;
}

// A load at an index that is equal in all lanes: what its lanes would fetch alike they fetch side by side.
std::optional<SpirvWriter::Fetch> SpirvWriter::shareable(const Node& n, uint32_t in_block, uint32_t& lane) const {
  const uint32_t size = caps_.subgroup.max;
  const bool whole = size > 1 && caps_.subgroup.min == size && k_.lanes % size == 0;
  if (!whole || n.op != Op::load || !is_texel(k_.views[n.imm])) return std::nullopt;
  const kir::View& view = k_.views[n.imm];
  if (view.width != 1 || type_bytes(view.type) != 4) return std::nullopt;
  if (!uniform_.uniform(n.a) || uniform_.varying_block[in_block] != 0) return std::nullopt;
  Ref base = n.a;
  uint64_t offset = 0;
  if (at(base).op == Op::add && at(at(base).b).op == Op::constant) {
    offset = at(at(base).b).imm;
    base = at(base).a;
  }
  lane = static_cast<uint32_t>(offset % size);
  return Fetch{texel_number(view), base, static_cast<uint32_t>(offset / size)};
}

// Where another load shares it.
std::optional<SpirvWriter::Fetch> SpirvWriter::shared_fetch(const Node& n, uint32_t in_block, uint32_t& lane) const {
  const auto fetch = shareable(n, in_block, lane);
  const auto alike = [&](const Fetch& f) { return f.alike(*fetch); };
  return fetch && std::any_of(shared_.begin(), shared_.end(), alike) ? fetch : std::nullopt;
}

void SpirvWriter::find_shared_fetches() {
  std::vector<Fetch> once;
  for (uint32_t b = 0; b < k_.blocks.size(); ++b) {
    for (const Ref r : k_.blocks[b]) {
      home_[r] = b;
      uint32_t lane = 0;
      const auto fetch = shareable(at(r), b, lane);
      if (!fetch) continue;
      const auto alike = [&](const Fetch& f) { return f.alike(*fetch); };
      const bool again = std::any_of(once.begin(), once.end(), alike);
      (again ? shared_ : once).push_back(*fetch);
    }
  }
  if (shared_.empty()) return;
  m_.capability(GroupNonUniformBallot);
  subgroup_lane_ = built_in(SubgroupLocalInvocationId, word());
}

// A fetch waits for memory and holds up what stands behind it, so all of a block come first, next to each other.
// Nothing writes what they read.
void SpirvWriter::fetch_early(uint32_t index) {
  for (const Ref r : k_.blocks[index]) {
    if (at(r).op == Op::load && is_texel(k_.views[at(r).imm]) && is_movable(r, index)) move_early(r, index);
  }
}

// Whether it hangs on nothing in its block but pure values and fetches. Operands stand before what uses them.
bool SpirvWriter::is_movable(Ref r, uint32_t index) {
  if (home_[r] != index) return true;
  if (movable_[r] != Movable::unknown) return movable_[r] == Movable::yes;
  const Node& n = at(r);
  bool all = n.op == Op::load ? is_texel(k_.views[n.imm]) : kir::op_info(n.op).cls == kir::OpClass::pure;
  kir::each_operand(n, [&](Ref o) { all = all && is_movable(o, index); });
  movable_[r] = all ? Movable::yes : Movable::no;
  return all;
}

void SpirvWriter::move_early(Ref r, uint32_t index) {
  if (home_[r] != index || early_[r] != 0) return;
  kir::each_operand(at(r), [&](Ref o) { move_early(o, index); });
  early_[r] = 1;
  statement(r);
}

}  // namespace tern::emit
