#include "backends/mean/limits.h"

#include <string>
#include <vector>

namespace tern::mean_device {
namespace {

Result<uint64_t> value_of(const Program& program, Dim dim, std::span<const int64_t> block) {
  int64_t value = -1;
  if (const auto c = dim.constant()) value = *c;
  for (size_t i = 0; i < program.block.size() && i < block.size(); ++i) {
    if (program.block[i] == dim) value = block[i];
  }
  if (value < 0) return make_error(Code::internal, "a step uses a size that the program's dims block lacks");
  return static_cast<uint64_t>(value);
}

// A binding as the device sees it: bytes of a piece of memory, whatever the program calls it.
struct Bound {
  const hal::Buffer* buffer;
  uint64_t first, last;
  Access declared;
  BufferId id;
};

std::string named(const Program& program, const Bound& bound) { return "'" + program.buffers[bound.id].name + "'"; }

Status check_binding(const Program& program, const Step& step, const Caps& caps, const Bound& bound) {
  const uint64_t bytes = bound.last - bound.first;
  if (bound.buffer == nullptr)
    return make_error(Code::invalid, "the slot of " + named(program, bound) + " is empty", step.label);
  if (bound.first % caps.offset_alignment != 0) {
    return make_error(Code::invalid,
                      "the binding of " + named(program, bound) + " starts at byte " + std::to_string(bound.first) +
                          ", which is no multiple of " + std::to_string(caps.offset_alignment),
                      step.label);
  }
  if (bytes > caps.max_binding_bytes) {
    return Error{Code::limit,
                 "the binding of " + named(program, bound) + " has " + std::to_string(bytes) +
                     " bytes, the device takes " + std::to_string(caps.max_binding_bytes),
                 step.label, bytes, caps.max_binding_bytes};
  }
  return ok();
}

// Access is a buffer's in one launch, not a range's: reading one end and writing the other is mixed.
Status check_pair(const Program& program, const Step& step, const Bound& a, const Bound& b) {
  if (a.buffer != b.buffer || (a.declared == Access::read && b.declared == Access::read)) return ok();
  const std::string both = named(program, a) + " and " + named(program, b);
  if (a.declared == Access::read || b.declared == Access::read) {
    return make_error(Code::invalid,
                      both +
                          " lie in one buffer, which is bound for reading and for writing in one launch; bind both "
                          "read-write",
                      step.label);
  }
  if (a.first < b.last && b.first < a.last)
    return make_error(Code::invalid, both + " are writable bindings of the same bytes; bind them once", step.label);
  return ok();
}

Status check_groups(const Program& program, const Step& step, const Caps& caps, std::span<const int64_t> block) {
  TERN_TRY(const uint64_t groups, value_of(program, std::get<Launch>(step.what).groups, block));
  const uint64_t side = std::min<uint64_t>(caps.max_groups, UINT32_MAX);
  if (groups <= side * side) return ok();
  return Error{Code::limit,
               "a launch has " + std::to_string(groups) + " groups, the device takes " + std::to_string(side) +
                   " in each of two dimensions",
               step.label, groups, side * side};
}

}  // namespace

Status check_recorded(const Program& program, uint32_t list, const Caps& caps) {
  if (list >= program.lists.size()) return make_error(Code::internal, "no such step list");
  for (const Step& step : program.lists[list]) {
    const auto* launch = std::get_if<Launch>(&step.what);
    if (launch == nullptr) continue;
    if (launch->kernel >= program.kernels.size())
      return make_error(Code::internal, "a launch names no kernel", step.label);
    const std::vector<Access>& declared = program.kernels[launch->kernel].sig.bindings;
    if (declared.size() != step.uses.size())
      return make_error(Code::internal, "a launch and its kernel disagree about the number of bindings", step.label);
    if (declared.size() > caps.max_bindings) {
      return Error{Code::limit,
                   "a launch has " + std::to_string(declared.size()) + " bindings, the device takes " +
                       std::to_string(caps.max_bindings),
                   step.label, declared.size(), caps.max_bindings};
    }
    for (size_t i = 0; i < declared.size(); ++i) {
      if (step.uses[i].access != Access::read && declared[i] == Access::read) {
        return make_error(
            Code::invalid,
            "a launch writes '" + program.buffers[step.uses[i].ref.id].name + "' through a binding for reading",
            step.label);
      }
    }
  }
  return ok();
}

Status check_submitted(const Program& program, uint32_t list, const Caps& caps, const hal::Binding& binding) {
  for (const Step& step : program.lists[list]) {
    const auto* launch = std::get_if<Launch>(&step.what);
    if (launch == nullptr) continue;
    TERN_OK(check_groups(program, step, caps, binding.block));
    std::vector<Bound> bounds;
    for (size_t i = 0; i < step.uses.size(); ++i) {
      const Ref& ref = step.uses[i].ref;
      TERN_TRY(const uint64_t offset, value_of(program, ref.offset, binding.block));
      TERN_TRY(const uint64_t bytes, value_of(program, ref.bytes, binding.block));
      if (ref.id >= binding.slots.size()) return make_error(Code::internal, "a slot is missing", step.label);
      const hal::Slot& slot = binding.slots[ref.id];
      const Bound bound{slot.buffer, slot.offset + offset, slot.offset + offset + bytes,
                        program.kernels[launch->kernel].sig.bindings[i], ref.id};
      TERN_OK(check_binding(program, step, caps, bound));
      for (const Bound& other : bounds) TERN_OK(check_pair(program, step, other, bound));
      bounds.push_back(bound);
    }
  }
  return ok();
}

}  // namespace tern::mean_device
