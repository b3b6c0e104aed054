// Places temporaries in one arena: liveness counts phases; the largest first, each at the lowest offset that is free
// while it lives.
#include <algorithm>
#include <limits>

#include "program/program.h"

namespace tern {
namespace {

struct Life {
  BufferId id;
  uint64_t bytes;
  uint32_t first, last;  // phases, inclusive
};

std::vector<Life> lives(const Program& program, uint32_t list, const std::vector<uint64_t>& bytes) {
  constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();
  std::vector<Life> all(program.buffers.size());
  for (BufferId id = 0; id < all.size(); ++id) all[id] = {id, bytes[id], kNever, 0};
  for (const Step& step : program.lists[list]) {
    for (const Use& use : step.uses) {
      Life& life = all[use.ref.id];
      life.first = std::min(life.first, step.phase);
      life.last = std::max(life.last, step.phase);
    }
  }
  std::erase_if(all, [&](const Life& l) { return l.first == kNever || program.buffers[l.id].origin != Origin::temp; });
  return all;
}

}  // namespace

Result<std::vector<uint64_t>> most_buffer_bytes(const Program& program, const Bounds& bounds) {
  std::vector<uint64_t> out;
  for (const BufferDef& def : program.buffers) {
    const int64_t most = program.dims->range(def.bytes, bounds).second;
    if (most == std::numeric_limits<int64_t>::max())
      return make_error(Code::limit, "the size of a buffer, " + program.dims->text(def.bytes) + ", has no bound",
                        def.name);
    out.push_back(static_cast<uint64_t>(std::max<int64_t>(most, 0)));  // sizes below 0 are refused when they come
  }
  return out;
}

Result<MemoryPlan> plan_memory(const Program& program, uint32_t list, std::vector<uint64_t> bytes, uint32_t alignment) {
  MemoryPlan plan;
  plan.bytes = std::move(bytes);
  plan.offset.resize(program.buffers.size());
  std::vector<Life> todo = lives(program, list, plan.bytes);
  std::sort(todo.begin(), todo.end(),
            [](const Life& a, const Life& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.id < b.id; });
  const auto aligned = [&](uint64_t n) { return (n + alignment - 1) / alignment * alignment; };
  std::vector<Life> placed;  // ordered by offset
  for (const Life& life : todo) {
    uint64_t at = 0;
    size_t where = 0;
    for (size_t i = 0; i < placed.size(); ++i) {
      const Life& other = placed[i];
      if (other.last < life.first || life.last < other.first) continue;
      const uint64_t begin = plan.offset[other.id];
      if (at + aligned(life.bytes) <= begin) break;
      at = std::max(at, begin + aligned(std::max<uint64_t>(other.bytes, 1)));
    }
    plan.offset[life.id] = at;
    while (where < placed.size() && plan.offset[placed[where].id] <= at) ++where;
    placed.insert(placed.begin() + static_cast<std::ptrdiff_t>(where), life);
    if (life.bytes > std::numeric_limits<uint64_t>::max() / 4 - at)
      return make_error(Code::limit, "temporaries exceed the address space");
    plan.arena = std::max(plan.arena, at + aligned(std::max<uint64_t>(life.bytes, 1)));
  }
  return plan;
}

Result<MemoryPlan> plan_range(const Program& program, uint32_t list, const Bounds& bounds, uint32_t alignment) {
  TERN_TRY(std::vector<uint64_t> bytes, most_buffer_bytes(program, bounds));
  return plan_memory(program, list, std::move(bytes), std::max(64u, alignment));
}

}  // namespace tern
