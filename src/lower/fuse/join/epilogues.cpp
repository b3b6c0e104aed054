// A region that reads the result of a matmul, norm or reduce element by element moves into it. Several matmuls of one
// input that meet in one region become accumulators of one part (gate and up).
#include <algorithm>

#include "lower/fuse/join/axes.h"

namespace tern::lowering {
namespace {

using Kind = ScalarExpr::Kind;

// Axes of the result that an epilogue runs over; empty: the family has none.
Shape result_space(const Problem& p) {
  if (p.family == Family::matmul) return {p.extent[0], p.extent[1], p.parts[0].n};
  if (p.family == Family::norm) return p.extent;
  if (p.family != Family::reduce) return {};
  const size_t kept = p.extent.size() - std::get<ReduceDesc>(p.desc).reduced_axes;
  return Shape(p.extent.begin(), p.extent.begin() + static_cast<std::ptrdiff_t>(kept));
}

bool plain(const Group& g) {
  const Problem& p = g.problem;
  const bool family = p.family == Family::matmul || p.family == Family::norm || p.family == Family::reduce;
  return family && p.parts.size() == 1 && p.parts[0].epilogue.empty() && p.parts[0].outs.size() == 1;
}

// The load of the region that is exactly this group's result.
struct Feed {
  uint32_t group;
  uint16_t load;
};

struct Merge {
  FuseState& s;
  Uses& u;
  const std::vector<bool>& gone;
  uint32_t region;
  Shape shape = {};
  std::vector<Feed> feeds = {};
  std::vector<bool> alive = {};  // of each feed: somebody else reads the result too

  const Group& at(const Feed& f) const { return s.groups[f.group]; }
  void find_feeds();
  bool choose(size_t lead);
  bool acyclic() const;
  std::optional<Group> make() const;
  std::optional<ScalarExpr> epilogue(Group& merged, const std::vector<size_t>& first) const;
};

void Merge::find_feeds() {
  const Problem& r = s.groups[region].problem;
  const IndexMap dense = dense_map(s.dims, shape);
  for (uint16_t l = 0; l < r.prologue.loads.size(); ++l) {
    const ScalarExpr::Load& load = r.prologue.loads[l];
    const Value v = s.groups[region].values[load.operand];
    const auto& writers = u.writers(v);
    if (writers.size() != 1 || gone[writers[0]] || !plain(s.groups[writers[0]])) continue;
    const auto same = [&](const ScalarExpr::Load& other) { return other.operand == load.operand; };
    if (std::count_if(r.prologue.loads.begin(), r.prologue.loads.end(), same) != 1) continue;
    // An accumulator is not rounded to a narrower type as a stored result would be.
    if (dtype_bytes(s.graph.type(v).dtype) < 4 && s.graph.type(v).dtype != DType::boolean) continue;
    if (s.groups[writers[0]].device == s.groups[region].device && same_map(s.dims, load.map, dense, shape))
      feeds.push_back({writers[0], l});
  }
}

// Keeps the feeds that can be one part with the lead.
bool Merge::choose(size_t lead) {
  const Feed first = feeds[lead];
  const Group& base = at(first);
  std::erase_if(feeds, [&](const Feed& f) {
    if (f.group == first.group) return false;
    const Group& g = at(f);
    return base.problem.family != Family::matmul || g.problem.family != Family::matmul ||
           g.values[0] != base.values[0] || g.problem.extent != base.problem.extent ||
           g.problem.operands[0].type != base.problem.operands[0].type || g.problem.desc != base.problem.desc ||
           g.problem.parts[0].n != base.problem.parts[0].n;
  });
  alive.clear();
  for (const Feed& f : feeds) {
    const Value v = at(f).values.back();
    const auto& readers = u.readers(v);
    alive.push_back(s.kept.contains(v) || readers.size() != 1);
  }
  return acyclic();
}

// Nothing else stands between the feeds and the region, and the feeds do not need each other.
bool Merge::acyclic() const {
  for (const Feed& a : feeds) {
    if (u.between(a.group, region)) return false;
    for (const Feed& b : feeds) {
      if (a.group != b.group && u.depends(a.group, b.group)) return false;
    }
  }
  return true;
}

std::optional<ScalarExpr> Merge::epilogue(Group& merged, const std::vector<size_t>& first) const {
  const Group& r = s.groups[region];
  const ScalarExpr& from = r.problem.prologue;
  ScalarExpr code;
  code.consts = from.consts;
  code.dims = from.dims;
  code.code = from.code;
  const auto fed = [&](uint16_t load) {
    return std::find_if(feeds.begin(), feeds.end(), [&](const Feed& f) { return f.load == load; });
  };
  const size_t rank = merged.problem.extent.size();
  std::vector<uint16_t> place(from.loads.size());
  for (uint16_t l = 0; l < from.loads.size(); ++l) {
    if (fed(l) != feeds.end()) continue;
    auto map = map_over(s.dims, from.loads[l].map, shape, first);
    if (!map) return std::nullopt;
    if (merged.problem.family == Family::reduce) map->stride.resize(rank, 0);
    Operand operand = r.problem.operands[from.loads[l].operand];
    operand.role = Role::extra;
    place[l] = static_cast<uint16_t>(code.loads.size());
    code.loads.push_back({read_operand(merged, r.values[from.loads[l].operand], operand), *map});
  }
  for (ScalarExpr::Ins& i : code.code) {
    if (i.kind == Kind::index) {
      const auto axis = axis_over(shape, first, i.a);
      if (!axis) return std::nullopt;
      i.a = *axis;
    }
    if (i.kind != Kind::load) continue;
    const auto f = fed(i.a);
    if (f != feeds.end())
      i.kind = Kind::accumulator, i.a = static_cast<uint16_t>(f - feeds.begin());
    else
      i.a = place[i.a];
  }
  return code;
}

std::optional<Group> Merge::make() const {
  const Group &base = at(feeds[0]), &r = s.groups[region];
  const auto first = match_axes(s.dims, shape, result_space(base.problem));
  if (!first) return std::nullopt;
  Group merged = base;
  merged.label = r.label == base.label ? r.label : base.label + "+" + r.label;
  Part& part = merged.problem.parts[0];
  const Operand plain_out = merged.problem.operands.back();
  merged.values.pop_back();
  merged.problem.operands.pop_back();
  for (size_t i = 1; i < feeds.size(); ++i) {
    const Group& g = at(feeds[i]);
    // An accumulator each, even where two products share a weight.
    part.weights.push_back(read_operand(merged, g.values[1], g.problem.operands[1]));
    if (g.label != base.label) merged.label += "+" + g.label;
  }
  auto code = epilogue(merged, *first);
  if (!code) return std::nullopt;
  const Output region_out = r.problem.parts[0].outs[0];
  const IndexMap kept_map = part.outs[0].map;  // reduce: over all axes; others: dense
  part.outs.clear();
  const auto leave = [&](Value v, Operand operand, uint16_t result) {
    Output out;
    out.operand = static_cast<uint16_t>(merged.values.size());
    out.result = result;
    out.map = kept_map;
    operand.type.shape = plain_out.type.shape;
    merged.problem.operands.push_back(operand);
    merged.values.push_back(v);
    part.outs.push_back(out);
  };
  leave(r.values[region_out.operand], r.problem.operands[region_out.operand], region_out.result);
  for (uint16_t i = 0; i < feeds.size(); ++i) {
    if (!alive[i]) continue;
    const auto acc = std::find_if(code->code.begin(), code->code.end(),
                                  [&](const auto& x) { return x.kind == Kind::accumulator && x.a == i; });
    leave(at(feeds[i]).values.back(), plain_out, static_cast<uint16_t>(acc - code->code.begin()));
  }
  part.epilogue = std::move(*code);
  if (merged.values.size() > s.caps.max_bindings || !s.taken(merged.problem)) return std::nullopt;
  return merged;
}

bool absorb(FuseState& s, Uses& u, uint32_t region, std::vector<bool>& gone) {
  const Group& r = s.groups[region];
  Merge all{s, u, gone, region, r.problem.extent};
  all.find_feeds();
  // A matmul gains most: what it makes is largest.
  std::stable_sort(all.feeds.begin(), all.feeds.end(), [&](const Feed& a, const Feed& b) {
    return (all.at(a).problem.family == Family::matmul) > (all.at(b).problem.family == Family::matmul);
  });
  for (size_t lead = 0; lead < all.feeds.size(); ++lead) {
    Merge m = all;
    if (!m.choose(lead)) continue;
    auto merged = m.make();
    if (!merged) continue;
    for (const Feed& f : m.feeds) {
      gone[f.group] = true;
      u.join(region, f.group);
    }
    s.groups[region] = std::move(*merged);
    return true;
  }
  return false;
}

}  // namespace

void absorb_epilogues(FuseState& s) {
  std::vector<bool> gone(s.groups.size());
  Uses u(s);
  for (uint32_t g = 0; g < s.groups.size(); ++g) {
    const Problem& p = s.groups[g].problem;
    if (p.family != Family::region || p.parts[0].outs.size() != 1) continue;
    const Output& out = p.parts[0].outs[0];
    if (u.writers(s.groups[g].values[out.operand]).size() != 1) continue;
    if (!same_map(s.dims, out.map, dense_map(s.dims, p.extent), p.extent)) continue;
    absorb(s, u, g, gone);
  }
  drop(s, gone);
}

}  // namespace tern::lowering
