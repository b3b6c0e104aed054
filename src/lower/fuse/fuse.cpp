#include "lower/fuse/fuse.h"

#include "lower/fuse/make/anchors.h"

namespace tern::lowering {

Status make_anchors(FuseState& s) {
  for (const uint32_t id : s.order) {
    if (!s.is_anchor(id) || is_mover(s.graph.node(id))) continue;
    const Node& node = s.graph.node(id);
    const AnchorFn make = find_anchor(node.op->name);
    if (make == nullptr) {
      return make_error(Code::unsupported,
                        "op " + std::string(node.op->name) + " has no kernel family and no decomposition", s.where(id));
    }
    auto anchor = make(s.graph, s.dims, id);
    if (!anchor) {
      Error e = anchor.take_error();
      e.where = s.where(id);
      return e;
    }
    Group group;
    group.label = label_of(s.graph, id);
    group.device = s.device[id];
    group.problem = standalone(s.graph, *anchor);
    for (size_t i = 0; i < anchor->inputs.size(); ++i) {
      const Value base = s.base_of(anchor->inputs[i].value);
      group.problem.operands[i].origin = origin_of(s.graph, base);
      group.values.push_back(base);
    }
    if (anchor->in_place) {  // until states.cpp finds its place, the result is an operand like others
      group.problem.operands.push_back({anchor->outs[0], Role::out, Origin::temp, Access::write, {}});
    }
    for (uint16_t r = 0; r < anchor->outs.size(); ++r) group.values.push_back({id, r});
    s.groups.push_back(std::move(group));
  }
  return ok();
}

Result<Grouping> fuse(const Graph& graph, const std::vector<DeviceId>& device, const Caps& caps, const Taken& taken) {
  FuseState s(graph, device, caps, taken);
  mark_roots(s);
  TERN_OK(make_regions(s));
  TERN_OK(make_anchors(s));
  absorb_epilogues(s);
  absorb_prologues(s);
  merge_parts(s);
  merge_regions(s);
  collapse(s);
  return finish(s);
}

}  // namespace tern::lowering
