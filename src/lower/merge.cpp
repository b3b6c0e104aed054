// Epilogues move into matmuls; matmuls that share their input become parts of one launch.
#include <algorithm>
#include <functional>
#include <set>

#include "lower/fuse.h"

namespace tern::lowering {
namespace {

// Axes [first, end) of a shape whose product is the dim, taken from the back; nullopt where none fits.
std::optional<size_t> take(DimTable& dims, const Shape& shape, size_t end, Dim product) {
  Dim n = 1;
  for (size_t first = end;; --first) {
    if (dims.equal(n, product).value_or(false)) {
      // Leading ones belong to the next group; they move nothing.
      return first;
    }
    if (first == 0) return std::nullopt;
    n = dims.mul(n, shape[first - 1]);
  }
}

// A map over root axes as a map over {batch, m, n}.
std::optional<IndexMap> to_matrix(DimTable& dims, const IndexMap& map, const Shape& shape, size_t m_first, size_t n_first) {
  const auto join = [&](size_t first, size_t end) -> std::optional<Dim> {
    Dim stride = 0;
    Dim inner = 1;
    for (size_t a = end; a-- > first;) {
      if (shape[a] == Dim(1)) continue;
      if (inner == Dim(1)) stride = map.stride[a];
      else if (!dims.equal(map.stride[a], dims.mul(stride, inner)).value_or(false)) return std::nullopt;
      inner = dims.mul(inner, shape[a]);
    }
    return stride;
  };
  const auto b = join(0, m_first), m = join(m_first, n_first), n = join(n_first, shape.size());
  if (!b || !m || !n) return std::nullopt;
  return IndexMap{map.offset, {*b, *m, *n}};
}

struct Uses {
  std::map<Value, std::set<size_t>> readers;  // groups
  std::map<Value, std::vector<size_t>> writers;
};
Uses uses_of(const FuseState& s) {
  Uses u;
  for (size_t g = 0; g < s.groups.size(); ++g) {
    for (size_t i = 0; i < s.groups[g].values.size(); ++i) {
      const Access access = s.groups[g].problem.operands[i].access;
      if (access != Access::write) u.readers[s.groups[g].values[i]].insert(g);
      if (access != Access::read) u.writers[s.groups[g].values[i]].push_back(g);
    }
  }
  return u;
}

// Does group `to` need something that group `from` makes, directly or through others?
bool depends(const FuseState& s, const Uses& u, size_t to, size_t from) {
  std::set<size_t> seen;
  const std::function<bool(size_t)> walk = [&](size_t g) {
    if (g == from) return true;
    if (!seen.insert(g).second) return false;
    for (size_t i = 0; i < s.groups[g].values.size(); ++i) {
      if (s.groups[g].problem.operands[i].access == Access::write) continue;
      const auto it = u.writers.find(s.groups[g].values[i]);
      if (it == u.writers.end()) continue;
      for (const size_t w : it->second) {
        if (w != g && walk(w)) return true;
      }
    }
    return false;
  };
  return walk(to);
}

bool plain_matmul(const Group& g) {
  return g.problem.family == Family::matmul && g.problem.parts.size() == 1 && g.problem.parts[0].epilogue.empty() && g.problem.parts[0].outs.size() == 1;
}
bool same_input(const Group& a, const Group& b) {
  return a.values[0] == b.values[0] && a.problem.extent == b.problem.extent && a.problem.operands[0].type == b.problem.operands[0].type &&
         a.problem.desc == b.problem.desc;
}

// The load of the region that is exactly this matmul's result.
struct Feed {
  size_t group;
  uint16_t load;
};

std::vector<Feed> feeds(FuseState& s, const Uses& u, size_t region, const Shape& shape) {
  const Group& r = s.groups[region];
  std::vector<Feed> out;
  const IndexMap dense = dense_map(s.dims, shape);
  for (uint16_t l = 0; l < r.problem.prologue.loads.size(); ++l) {
    const ScalarExpr::Load& load = r.problem.prologue.loads[l];
    const Value v = r.values[load.operand];
    const auto w = u.writers.find(v);
    if (w == u.writers.end() || w->second.size() != 1 || !plain_matmul(s.groups[w->second[0]])) continue;
    const auto readers = u.readers.find(v);
    if (readers->second.size() != 1 || s.live_output(v)) continue;
    const auto same = [&](const ScalarExpr::Load& other) { return other.operand == load.operand; };
    if (std::count_if(r.problem.prologue.loads.begin(), r.problem.prologue.loads.end(), same) != 1) continue;
    if (s.graph.type(v).dtype != DType::f32 || !same_map(s.dims, load.map, dense)) continue;
    out.push_back({w->second[0], l});
  }
  return out;
}

// Rewrites loads of matmul results into accumulators and the other loads into extra operands of the matmul.
bool absorb(FuseState& s, const Uses& u, size_t region, const Shape& shape, std::vector<bool>& gone) {
  Group& r = s.groups[region];
  if (r.problem.parts[0].outs.size() != 1) return false;
  std::vector<Feed> all = feeds(s, u, region, shape);
  std::erase_if(all, [&](const Feed& f) { return gone[f.group]; });
  if (all.empty()) return false;
  // Those that share the last one's input become accumulators of one part; the others stay stored values.
  const size_t last = all.back().group;
  std::erase_if(all, [&](const Feed& f) {
    return !same_input(s.groups[f.group], s.groups[last]) || s.groups[f.group].problem.parts[0].n != s.groups[last].problem.parts[0].n;
  });
  const Group& base = s.groups[last];
  const auto n_first = take(s.dims, shape, shape.size(), base.problem.parts[0].n);
  if (!n_first) return false;
  const auto m_first = take(s.dims, shape, *n_first, base.problem.extent[1]);
  if (!m_first) return false;
  const bool batched = std::get<MatmulDesc>(base.problem.desc).batched_weight;
  if (!batched && !s.dims.equal(element_count(s.dims, Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(*m_first))), 1).value_or(false)) return false;
  for (const ScalarExpr::Ins& i : r.problem.prologue.code) {
    if (i.kind == ScalarExpr::Kind::index) return false;
  }
  Group merged = base;
  merged.problem.parts[0].weights.clear();
  merged.values.pop_back();  // the plain result
  merged.problem.operands.pop_back();
  merged.values.resize(1);
  merged.problem.operands.resize(1);
  for (const Feed& f : all) {
    merged.problem.parts[0].weights.push_back(static_cast<uint16_t>(merged.values.size()));
    merged.values.push_back(s.groups[f.group].values[1]);
    merged.problem.operands.push_back(s.groups[f.group].problem.operands[1]);
  }
  ScalarExpr code;
  code.consts = r.problem.prologue.consts;
  code.dims = r.problem.prologue.dims;
  code.code = r.problem.prologue.code;
  std::vector<uint16_t> new_load(r.problem.prologue.loads.size());
  for (uint16_t l = 0; l < r.problem.prologue.loads.size(); ++l) {
    const auto fed = std::find_if(all.begin(), all.end(), [&](const Feed& f) { return f.load == l; });
    if (fed != all.end()) continue;
    const ScalarExpr::Load& load = r.problem.prologue.loads[l];
    const auto map = to_matrix(s.dims, load.map, shape, *m_first, *n_first);
    if (!map) return false;
    const Value v = r.values[load.operand];
    auto at = std::find(merged.values.begin() + 1 + static_cast<std::ptrdiff_t>(all.size()), merged.values.end(), v);
    if (at == merged.values.end()) {
      Operand operand = r.problem.operands[load.operand];
      operand.role = Role::extra;
      merged.problem.operands.push_back(operand);
      merged.values.push_back(v);
      at = merged.values.end() - 1;
    }
    new_load[l] = static_cast<uint16_t>(code.loads.size());
    code.loads.push_back({static_cast<uint16_t>(at - merged.values.begin()), *map});
  }
  for (ScalarExpr::Ins& i : code.code) {
    if (i.kind != ScalarExpr::Kind::load) continue;
    const auto fed = std::find_if(all.begin(), all.end(), [&](const Feed& f) { return f.load == i.a; });
    if (fed != all.end()) {
      i.kind = ScalarExpr::Kind::accumulator;
      i.a = static_cast<uint16_t>(fed - all.begin());
    } else {
      i.a = new_load[i.a];
    }
  }
  if (merged.values.size() + 1 > s.caps.max_bindings) return false;
  // What the region reads besides must not need the matmul's other consumers; it cannot, each result has one reader: this region.
  Part& part = merged.problem.parts[0];
  part.epilogue = std::move(code);
  Output out;
  out.operand = static_cast<uint16_t>(merged.values.size());
  out.result = r.problem.parts[0].outs[0].result;
  Operand result = r.problem.operands[r.problem.parts[0].outs[0].operand];
  result.type.shape = batched ? Shape{base.problem.extent[0], base.problem.extent[1], part.n} : Shape{base.problem.extent[1], part.n};
  merged.problem.operands.push_back(result);
  merged.values.push_back(r.values[r.problem.parts[0].outs[0].operand]);
  part.outs = {out};
  for (const Feed& f : all) gone[f.group] = true;
  r = std::move(merged);
  return true;
}

void append_part(Group& into, const Group& from) {
  Part part = from.problem.parts[0];
  std::vector<uint16_t> place(from.values.size(), 0);
  for (size_t i = 1; i < from.values.size(); ++i) {
    // A value that both read is one operand.
    size_t at = into.values.size();
    if (from.problem.operands[i].access == Access::read) {
      for (size_t j = 1; j < into.values.size(); ++j) {
        if (into.values[j] == from.values[i] && into.problem.operands[j].access == Access::read && into.problem.operands[j].type == from.problem.operands[i].type &&
            into.problem.operands[j].role == from.problem.operands[i].role) {
          at = j;
        }
      }
    }
    if (at == into.values.size()) {
      into.values.push_back(from.values[i]);
      into.problem.operands.push_back(from.problem.operands[i]);
    }
    place[i] = static_cast<uint16_t>(at);
  }
  for (uint16_t& w : part.weights) w = place[w];
  for (ScalarExpr::Load& l : part.epilogue.loads) l.operand = place[l.operand];
  for (Output& o : part.outs) o.operand = place[o.operand];
  into.problem.parts.push_back(std::move(part));
}

void drop(FuseState& s, const std::vector<bool>& gone) {
  std::vector<Group> kept;
  for (size_t g = 0; g < s.groups.size(); ++g) {
    if (!gone[g]) kept.push_back(std::move(s.groups[g]));
  }
  s.groups = std::move(kept);
}

}  // namespace

void absorb_epilogues(FuseState& s) {
  std::vector<bool> gone(s.groups.size());
  const Uses u = uses_of(s);
  for (size_t g = 0; g < s.groups.size(); ++g) {
    if (s.groups[g].problem.family != Family::region || s.groups[g].problem.parts[0].outs.size() != 1) continue;
    const Output& out = s.groups[g].problem.parts[0].outs[0];
    if (u.writers.at(s.groups[g].values[out.operand]).size() != 1) continue;
    // The region's own axes, which may be joined ones: a matrix at least.
    const Shape shape = s.groups[g].problem.extent;
    if (!same_map(s.dims, out.map, dense_map(s.dims, shape))) continue;
    absorb(s, u, g, shape, gone);
  }
  drop(s, gone);
}

void merge_parts(FuseState& s) {
  std::vector<bool> gone(s.groups.size());
  for (size_t a = 0; a < s.groups.size(); ++a) {
    if (gone[a] || s.groups[a].problem.family != Family::matmul || std::get<MatmulDesc>(s.groups[a].problem.desc).batched_weight) continue;
    for (size_t b = a + 1; b < s.groups.size(); ++b) {
      if (gone[b] || s.groups[b].problem.family != Family::matmul || s.groups[b].problem.parts.size() != 1) continue;
      if (!same_input(s.groups[a], s.groups[b])) continue;
      if (s.groups[a].values.size() + s.groups[b].values.size() - 1 > s.caps.max_bindings) continue;
      const Uses u = uses_of(s);
      if (depends(s, u, a, b) || depends(s, u, b, a)) continue;
      append_part(s.groups[a], s.groups[b]);
      s.groups[a].label += "+" + s.groups[b].label;
      s.groups[b].values.clear();
      s.groups[b].problem.operands.clear();
      gone[b] = true;
    }
  }
  drop(s, gone);
}

}  // namespace tern::lowering
