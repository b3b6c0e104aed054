#include "hal/recorded.h"

#include <map>

namespace tern::hal {
namespace {

class Recorder {
 public:
  Recorder(const Program& program, size_t kernels, std::string_view device) : kernels_(kernels), device_(device) {
    for (size_t i = 0; i < program.block.size(); ++i) index_.emplace(program.block[i], static_cast<int32_t>(i));
  }

  Result<RecordedStep> record(const Step& step) const {
    RecordedStep out;
    out.phase = step.phase;
    for (const Use& use : step.uses) {
      RecordedUse r{use.ref.id, {}, {}};
      TERN_TRY(r.offset, number(use.ref.offset));
      TERN_TRY(r.bytes, number(use.ref.bytes));
      out.uses.push_back(r);
    }
    if (const auto* launch = std::get_if<Launch>(&step.what)) {
      if (launch->kernel >= kernels_) return make_error(Code::internal, "a launch names no kernel");
      out.kernel = launch->kernel;
      TERN_TRY(out.groups, number(launch->groups));
      for (const Dim d : launch->scalars) {
        TERN_TRY(const Number n, number(d));
        out.scalars.push_back(n);
      }
      return out;
    }
    if (const auto* fill = std::get_if<Fill>(&step.what)) {
      out.kind = RecordedStep::Kind::fill;
      out.word = fill->word;
      return out;
    }
    out.kind = RecordedStep::Kind::copy;
    if (std::holds_alternative<Copy>(step.what)) return out;
    return make_error(Code::unsupported, std::string(device_) + " records launches, copies and fills; step '" +
                                             step.label + "' is neither");
  }

 private:
  Result<Number> number(Dim dim) const {
    if (const auto c = dim.constant()) return Number{*c, -1};
    const auto it = index_.find(dim);
    if (it == index_.end()) return make_error(Code::internal, "a step uses a size that the program's dims block lacks");
    return Number{0, it->second};
  }

  const size_t kernels_;
  const std::string_view device_;
  std::map<Dim, int32_t> index_;
};

}  // namespace

Result<std::vector<RecordedStep>> record_steps(const Program& program, uint32_t list, size_t kernels,
                                               std::string_view device) {
  if (list >= program.lists.size()) return make_error(Code::internal, "no such step list");
  const Recorder recorder(program, kernels, device);
  std::vector<RecordedStep> out;
  const std::vector<Step>& steps = program.lists[list];
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (i > 0 && steps[i].phase < steps[i - 1].phase)
      return make_error(Code::internal, "phases of a list do not ascend");
    TERN_TRY(RecordedStep step, recorder.record(steps[i]));
    step.step = i;
    out.push_back(std::move(step));
  }
  return out;
}

Result<Placed> place(const RecordedUse& use, const Binding& binding) {
  if (use.buffer >= binding.slots.size() || binding.slots[use.buffer].buffer == nullptr)
    return make_error(Code::internal, "slot " + std::to_string(use.buffer) + " of a list is empty");
  const Slot& slot = binding.slots[use.buffer];
  const Placed p{slot.buffer, slot.offset + static_cast<uint64_t>(use.offset.value(binding.block)),
                 static_cast<uint64_t>(use.bytes.value(binding.block))};
  if (p.offset + p.bytes <= slot.buffer->size()) return p;
  return Error{Code::internal, "a window lies past its buffer", "slot " + std::to_string(use.buffer),
               p.offset + p.bytes, slot.buffer->size()};
}

uint64_t fresh_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

Result<uint32_t> groups_of(const Number& groups, std::span<const int64_t> block) {
  const int64_t v = groups.value(block);
  if (v < 0 || v > int64_t{UINT32_MAX}) return make_error(Code::limit, "a launch has too many groups");
  return static_cast<uint32_t>(v);
}

Result<uint32_t> scalar_word(const Number& scalar, std::span<const int64_t> block) {
  const int64_t v = scalar.value(block);
  if (v < INT32_MIN || v > int64_t{UINT32_MAX})
    return make_error(Code::limit, "a kernel's size argument does not fit 32 bits");
  return static_cast<uint32_t>(v);
}

}  // namespace tern::hal
