// Replays a list against a plan, byte range by byte range, in an interval map of who owns what. Shares no code with the
// planner.
#include <map>
#include <set>
#include <string>

#include "program/program.h"

namespace tern {
namespace {

// Owner of each byte of the arena: intervals [first, last) -> buffer.
class Arena {
 public:
  void claim(uint64_t first, uint64_t last, BufferId owner) {
    cut(first);
    cut(last);
    auto it = owner_.lower_bound(first);
    while (it != owner_.end() && it->first < last) it = owner_.erase(it);
    if (first < last) owner_[first] = {last, owner};
  }
  // The first byte in the range that is not the buffer's.
  bool owned(uint64_t first, uint64_t last, BufferId owner) const {
    uint64_t at = first;
    auto it = owner_.upper_bound(first);
    if (it != owner_.begin()) --it;
    for (; at < last && it != owner_.end(); ++it) {
      if (it->second.first <= at) continue;
      if (it->first > at || it->second.second != owner) return false;
      at = it->second.first;
    }
    return at >= last;
  }

 private:
  void cut(uint64_t at) {
    auto it = owner_.upper_bound(at);
    if (it == owner_.begin()) return;
    --it;
    const auto [last, owner] = it->second;
    if (it->first < at && at < last) {
      it->second.first = at;
      owner_[at] = {last, owner};
    }
  }
  std::map<uint64_t, std::pair<uint64_t, BufferId>> owner_;
};

}  // namespace

Status check_memory(const Program& program, uint32_t list, const MemoryPlan& plan, std::span<const int64_t> symbols) {
  Arena arena;
  std::set<BufferId> written;
  const std::vector<Step>& steps = program.lists[list];
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin;
    while (end < steps.size() && steps[end].phase == steps[begin].phase) ++end;
    // Everything a phase touches is there at once: two temps of one phase may not share a byte.
    std::set<BufferId> touched;
    for (size_t i = begin; i < end; ++i) {
      for (const Use& use : steps[i].uses) {
        const BufferDef& def = program.buffers[use.ref.id];
        TERN_TRY(const int64_t offset, program.dims->eval(use.ref.offset, symbols));
        TERN_TRY(const int64_t bytes, program.dims->eval(use.ref.bytes, symbols));
        TERN_TRY(const int64_t whole, program.dims->eval(def.bytes, symbols));
        if (offset < 0 || bytes < 0 || offset > whole - bytes) {
          return make_error(Code::internal, "step '" + steps[i].label + "' reaches past buffer '" + def.name + "'");
        }
        if (def.origin != Origin::temp) continue;
        const uint64_t first = plan.offset[use.ref.id], last = first + plan.bytes[use.ref.id];
        if (static_cast<uint64_t>(whole) > plan.bytes[use.ref.id])
          return make_error(Code::internal, "buffer '" + def.name + "' is larger than it was planned for");
        if (last > plan.arena) return make_error(Code::internal, "buffer '" + def.name + "' lies past the arena");
        const bool reads = use.access != Access::write;
        if (reads && !written.contains(use.ref.id)) {
          bool here = false;  // a scratch that is written earlier in this very problem
          for (size_t j = begin; j < i; ++j) {
            for (const Use& w : steps[j].uses) here |= w.ref.id == use.ref.id && w.access != Access::read;
          }
          if (!here && use.access == Access::read)
            return make_error(Code::internal,
                              "step '" + steps[i].label + "' reads '" + def.name + "' before it is written");
        }
        if (use.access == Access::read && !arena.owned(first, last, use.ref.id)) {
          return make_error(Code::internal, "step '" + steps[i].label + "' reads '" + def.name +
                                                "' after its memory was given to another");
        }
        if (use.access != Access::read && !written.contains(use.ref.id)) {
          arena.claim(first, last, use.ref.id);
          written.insert(use.ref.id);
        }
        touched.insert(use.ref.id);
      }
    }
    for (const BufferId id : touched) {
      if (!arena.owned(plan.offset[id], plan.offset[id] + plan.bytes[id], id)) {
        return make_error(Code::internal,
                          "buffer '" + program.buffers[id].name + "' shares memory with another of its phase");
      }
    }
    begin = end;
  }
  return ok();
}

}  // namespace tern
