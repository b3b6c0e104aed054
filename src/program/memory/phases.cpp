// Hazards and phases: which steps of a list may run without a barrier between them.
#include <algorithm>
#include <map>

#include "program/program.h"

namespace tern {
namespace {

// Ends before the other begins, provably at every size.
bool before(const DimTable& dims, const Ref& a, const Ref& b) {
  const auto end_a = a.offset.constant() && a.bytes.constant()
                         ? std::optional<int64_t>(*a.offset.constant() + *a.bytes.constant())
                         : std::nullopt;
  if (end_a && b.offset.constant()) return *end_a <= *b.offset.constant();
  if (!a.offset.constant()) return false;
  return *a.offset.constant() + dims.range(a.bytes).second <= dims.range(b.offset).first;
}

}  // namespace

bool may_conflict(const Program& program, const Use& a, const Use& b) {
  if (a.ref.id != b.ref.id) return false;
  if (a.access == Access::read && b.access == Access::read) return false;
  return !before(*program.dims, a.ref, b.ref) && !before(*program.dims, b.ref, a.ref);
}

// A step's phase is one more than the latest phase of any earlier step it conflicts with; steps are then ordered by
// phase, which keeps every hazard's order and lets independent steps of different places share a barrier.
void assign_phases(Program& program, uint32_t list) {
  std::vector<Step>& steps = program.lists[list];
  struct Past {
    Use use;
    uint32_t phase, problem, step;
  };
  std::map<BufferId, std::vector<Past>> history;
  uint32_t first = 0, next = 0;  // the earliest phase of what follows; one more than the latest so far
  for (uint32_t i = 0; i < steps.size(); ++i) {
    Step& step = steps[i];
    const bool bind = std::holds_alternative<Bind>(step.what);
    uint32_t phase = bind ? next : first;
    for (const Use& use : step.uses) {
      for (const Past& past : history[use.ref.id]) {
        // Windows of one problem write apart from each other; a partial result they share is read by a later problem.
        if (past.problem == step.problem && step.problem != kNone && past.use.access == Access::write &&
            use.access == Access::write)
          continue;
        if (past.step != i && may_conflict(program, past.use, use)) phase = std::max(phase, past.phase + 1);
      }
    }
    step.phase = phase;
    next = std::max(next, phase + 1);
    if (bind) first = next;
    for (const Use& use : step.uses) history[use.ref.id].push_back({use, phase, step.problem, i});
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.phase < b.phase; });
}

void split_at_binds(Program& program) {
  for (RangeDef& range : program.ranges) {
    range.parts.clear();
    const std::vector<Step> steps = program.lists[range.list];
    const auto bind = [](const Step& step) { return std::holds_alternative<Bind>(step.what); };
    if (std::none_of(steps.begin(), steps.end(), bind)) continue;
    std::vector<Step> part;
    const auto close = [&] {
      range.parts.push_back(static_cast<uint32_t>(program.lists.size()));
      program.lists.push_back(std::move(part));
      part.clear();
    };
    for (const Step& step : steps) bind(step) ? close() : part.push_back(step);
    close();
  }
}

}  // namespace tern
