#include "lower/fuse/join/axes.h"

#include <algorithm>

namespace tern::lowering {

std::optional<std::vector<size_t>> match_axes(DimTable& dims, const Shape& region, const Shape& space) {
  std::vector<size_t> first(space.size() + 1, region.size());
  for (size_t i = space.size(); i-- > 0;) {
    Dim n = 1;
    size_t at = first[i + 1];
    while (!dims.equal(n, space[i]).value_or(false)) {  // leading ones belong to the next run; they move nothing
      if (at == 0) return std::nullopt;
      n = dims.mul(n, region[--at]);
    }
    first[i] = at;
  }
  for (size_t a = 0; a < first[0]; ++a) {
    if (region[a] != Dim(1)) return std::nullopt;
  }
  first[0] = 0;
  return first;
}

std::optional<IndexMap> map_over(DimTable& dims, const IndexMap& map, const Shape& region,
                                 const std::vector<size_t>& first) {
  IndexMap out{map.offset, {}};
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    Dim stride = 0, inner = 1;
    for (size_t a = first[i + 1]; a-- > first[i];) {
      if (region[a] == Dim(1)) continue;
      if (inner == Dim(1))
        stride = map.stride[a];
      else if (!dims.equal(map.stride[a], dims.mul(stride, inner)).value_or(false))
        return std::nullopt;
      inner = dims.mul(inner, region[a]);
    }
    out.stride.push_back(stride);
  }
  return out;
}

std::optional<uint16_t> axis_over(const Shape& region, const std::vector<size_t>& first, uint16_t axis) {
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    if (axis < first[i] || axis >= first[i + 1]) continue;
    for (size_t a = first[i]; a < first[i + 1]; ++a) {
      if (a != axis && region[a] != Dim(1)) return std::nullopt;
    }
    return static_cast<uint16_t>(i);
  }
  return std::nullopt;
}

namespace {

using Kind = ScalarExpr::Kind;

struct Joiner {
  DimTable& dims;
  Problem& p;
  std::vector<IndexMap*> maps;
  std::vector<ScalarExpr*> codes;
  size_t kept;  // axes before the reduced ones

  bool indexed(size_t a) const {
    return std::any_of(codes.begin(), codes.end(), [&](const ScalarExpr* e) {
      return std::any_of(e->code.begin(), e->code.end(),
                         [&](const ScalarExpr::Ins& i) { return i.kind == Kind::index && (i.a == a || i.a == a + 1); });
    });
  }
  // Axes a and a + 1 become one where every map walks them as one.
  void join(size_t a) {
    if (a + 1 == kept || indexed(a)) return;
    const bool one_outer = p.extent[a] == Dim(1), one_inner = p.extent[a + 1] == Dim(1);
    const bool joins = one_outer || one_inner || std::all_of(maps.begin(), maps.end(), [&](const IndexMap* m) {
                         return dims.equal(m->stride[a], dims.mul(m->stride[a + 1], p.extent[a + 1])).value_or(false);
                       });
    if (!joins) return;
    for (IndexMap* m : maps)
      m->stride.erase(m->stride.begin() + static_cast<std::ptrdiff_t>(one_inner && !one_outer ? a + 1 : a));
    p.extent[a] = dims.mul(p.extent[a], p.extent[a + 1]);
    p.extent.erase(p.extent.begin() + static_cast<std::ptrdiff_t>(a) + 1);
    if (a + 1 < kept) --kept;
    for (ScalarExpr* e : codes) {
      for (ScalarExpr::Ins& i : e->code) {
        if (i.kind == Kind::index && i.a > a) --i.a;
      }
    }
  }
};

void join_axes(FuseState& s, Problem& p) {
  Joiner j{s.dims, p, {}, {&p.prologue, &p.parts[0].epilogue}, p.extent.size()};
  const size_t rank = p.extent.size();
  if (p.family == Family::reduce) j.kept = rank - std::get<ReduceDesc>(p.desc).reduced_axes;
  for (ScalarExpr* e : j.codes) {
    for (ScalarExpr::Load& l : e->loads) j.maps.push_back(&l.map);
  }
  for (Output& o : p.parts[0].outs) j.maps.push_back(&o.map);
  for (IndexMap* m : j.maps) m->stride.resize(rank, 0);
  for (size_t a = rank; a-- > 1;) j.join(a - 1);
  if (p.family == Family::reduce)
    std::get<ReduceDesc>(p.desc).reduced_axes = static_cast<uint8_t>(p.extent.size() - j.kept);
}

}  // namespace

void collapse(FuseState& s) {
  for (Group& g : s.groups) {
    if (g.problem.family == Family::region || g.problem.family == Family::reduce) join_axes(s, g.problem);
  }
}

}  // namespace tern::lowering
