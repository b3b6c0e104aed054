// A region whose only reader is a store or a norm is computed by that: its value has no memory of its own.
#include <algorithm>

#include "lower/fuse/join/axes.h"

namespace tern::lowering {
namespace {

// Where the family finds what it reads, and how much of it it may compute: a norm looks at each element two or three
// times.
struct Source {
  Family family;
  size_t operand, max_code;
};
constexpr Source kSources[] = {{Family::store, 2, 96}, {Family::norm, 0, 10}};

std::optional<Group> absorb(FuseState& s, const Group& store, const Group& region, const Source& source) {
  if (region.problem.prologue.code.size() > source.max_code) return std::nullopt;
  const ScalarExpr& from = region.problem.prologue;
  const auto first = match_axes(s.dims, region.problem.extent, store.problem.extent);
  if (!first) return std::nullopt;
  Group merged = store;
  const auto at = static_cast<std::ptrdiff_t>(source.operand);
  merged.values.erase(merged.values.begin() + at);
  merged.problem.operands.erase(merged.problem.operands.begin() + at);
  const auto moved = [&](uint16_t& operand) { operand = static_cast<uint16_t>(operand - (operand > source.operand)); };
  for (Output& o : merged.problem.parts[0].outs) moved(o.operand);
  for (ScalarExpr::Load& l : merged.problem.parts[0].epilogue.loads) moved(l.operand);
  ScalarExpr& code = merged.problem.prologue;
  code = from;
  for (ScalarExpr::Load& l : code.loads) {
    const auto map = map_over(s.dims, l.map, region.problem.extent, *first);
    if (!map) return std::nullopt;
    l = {read_operand(merged, region.values[l.operand], region.problem.operands[l.operand]), *map};
  }
  for (ScalarExpr::Ins& i : code.code) {
    if (i.kind != ScalarExpr::Kind::index) continue;
    const auto axis = axis_over(region.problem.extent, *first, i.a);
    if (!axis) return std::nullopt;
    i.a = *axis;
  }
  const uint16_t result = region.problem.parts[0].outs[0].result;
  if (result + 1u != code.code.size()) code.code.push_back(code.code[result]);
  if (code.code.back().type != store.problem.operands[source.operand].type.dtype) return std::nullopt;
  if (merged.values.size() > s.caps.max_bindings || !s.taken(merged.problem)) return std::nullopt;
  return merged;
}

// Older forms of what the store updates: read while it is written, they would be half new.
bool reads_own_state(const FuseState& s, const Uses& u, const Group& store, const Group& region) {
  Value v = store.values[0];
  for (bool more = true; more;) {
    if (std::find(region.values.begin(), region.values.end(), v) != region.values.end()) return true;
    const auto& writers = u.writers(v);
    more = writers.size() == 1 && s.groups[writers[0]].problem.family == Family::store;
    if (more) v = s.groups[writers[0]].values[0];
  }
  return false;
}

}  // namespace

void absorb_prologues(FuseState& s) {
  std::vector<bool> gone(s.groups.size());
  Uses u(s);
  for (uint32_t at = 0; at < s.groups.size(); ++at) {
    Group& g = s.groups[at];
    const auto source = std::find_if(std::begin(kSources), std::end(kSources),
                                     [&](const Source& f) { return f.family == g.problem.family; });
    if (source == std::end(kSources) || !g.problem.prologue.empty()) continue;
    const Value x = g.values[source->operand];
    const auto &writers = u.writers(x), &readers = u.readers(x);
    if (writers.size() != 1 || readers.size() != 1 || s.kept.contains(x)) continue;
    const Group& region = s.groups[writers[0]];
    if (region.problem.family != Family::region || region.problem.parts[0].outs.size() != 1 ||
        region.device != g.device)
      continue;
    if (!same_map(s.dims, region.problem.parts[0].outs[0].map, dense_map(s.dims, region.problem.extent),
                  region.problem.extent))
      continue;
    // It may be an operand of the epilogue, too.
    if (std::count(g.values.begin(), g.values.end(), x) != 1) continue;
    if (g.problem.family == Family::store && reads_own_state(s, u, g, region)) continue;
    if (u.between(writers[0], at)) continue;
    auto merged = absorb(s, g, region, *source);
    if (!merged) continue;
    gone[writers[0]] = true;
    u.join(at, writers[0]);
    g = std::move(*merged);
  }
  drop(s, gone);
}

}  // namespace tern::lowering
