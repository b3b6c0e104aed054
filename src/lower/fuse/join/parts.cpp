// Matmuls that share their input become parts of one launch: the input is read once, and small products fill the
// machine.
#include <algorithm>

#include "lower/fuse/fuse.h"

namespace tern::lowering {
namespace {

void append_part(Group& into, const Group& from) {
  Part part = from.problem.parts[0];
  std::vector<uint16_t> place(from.values.size(), 0);
  for (size_t i = 1; i < from.values.size(); ++i) {
    if (from.problem.operands[i].access == Access::read) {
      place[i] = read_operand(into, from.values[i], from.problem.operands[i]);  // a value that both read is one operand
      continue;
    }
    place[i] = static_cast<uint16_t>(into.values.size());
    into.values.push_back(from.values[i]);
    into.problem.operands.push_back(from.problem.operands[i]);
  }
  for (uint16_t& w : part.weights) w = place[w];
  for (ScalarExpr::Load& l : part.epilogue.loads) l.operand = place[l.operand];
  for (Output& o : part.outs) o.operand = place[o.operand];
  into.problem.parts.push_back(std::move(part));
  if (into.label != from.label) into.label += "+" + from.label;
}

bool same_input(const Group& a, const Group& b) {
  return a.values[0] == b.values[0] && a.device == b.device && a.problem.extent == b.problem.extent &&
         a.problem.operands[0].type == b.problem.operands[0].type && a.problem.desc == b.problem.desc;
}

}  // namespace

void merge_parts(FuseState& s) {
  std::vector<bool> gone(s.groups.size());
  Uses u(s);
  std::map<Value, std::vector<uint32_t>> by_input;
  for (uint32_t g = 0; g < s.groups.size(); ++g) {
    const Problem& p = s.groups[g].problem;
    if (p.family == Family::matmul && !std::get<MatmulDesc>(p.desc).batched_weight)
      by_input[s.groups[g].values[0]].push_back(g);
  }
  for (const auto& [x, list] : by_input) {
    for (size_t i = 0; i < list.size(); ++i) {
      for (size_t j = i + 1; j < list.size(); ++j) {
        const uint32_t a = list[i], b = list[j];
        if (gone[a] || gone[b] || !same_input(s.groups[a], s.groups[b]) || u.depends(a, b) || u.depends(b, a)) continue;
        Group merged = s.groups[a];
        append_part(merged, s.groups[b]);
        if (merged.values.size() > s.caps.max_bindings || !s.taken(merged.problem)) continue;
        s.groups[a] = std::move(merged);
        gone[b] = true;
        u.join(a, b);
      }
    }
  }
  drop(s, gone);
}

}  // namespace tern::lowering
