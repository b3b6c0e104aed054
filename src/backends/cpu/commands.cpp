#include "backends/cpu/commands.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>

#include "base/check.h"

namespace tern::cpu {
namespace {

// Copies and fills are handed out in pieces of this many bytes.
constexpr int64_t kCopyPiece = 256 * 1024;

class Recorder {
 public:
  explicit Recorder(const Program& program) {
    for (size_t i = 0; i < program.block.size(); ++i) index_.emplace(program.block[i], static_cast<int32_t>(i));
  }
  Result<Number> number(Dim dim) const {
    if (const auto c = dim.constant()) return Number{*c, -1};
    const auto it = index_.find(dim);
    if (it == index_.end()) return make_error(Code::internal, "a step uses a size that the program's dims block lacks");
    return Number{0, it->second};
  }

 private:
  std::map<Dim, int32_t> index_;
};

Result<Item> record_item(const Step& step, std::span<const std::shared_ptr<hal::Kernel>> kernels,
                         const Recorder& numbers, std::vector<Number>& scalars) {
  Item item;
  if (const auto* launch = std::get_if<Launch>(&step.what)) {
    if (launch->kernel >= kernels.size()) return make_error(Code::internal, "a launch names no kernel");
    item.kernel = std::dynamic_pointer_cast<CpuKernel>(kernels[launch->kernel]);
    if (!item.kernel) return make_error(Code::internal, "a launch names a kernel of another device");
    TERN_TRY(item.groups, numbers.number(launch->groups));
    item.first_scalar = static_cast<uint32_t>(scalars.size());
    for (Dim d : launch->scalars) {
      TERN_TRY(Number n, numbers.number(d));
      scalars.push_back(n);
    }
    item.scalars = static_cast<uint32_t>(launch->scalars.size());
    return item;
  }
  if (std::holds_alternative<Copy>(step.what)) {
    item.kind = Item::Kind::copy;
    return item;
  }
  if (const auto* fill = std::get_if<Fill>(&step.what)) {
    item.kind = Item::Kind::fill;
    item.word = fill->word;
    return item;
  }
  return make_error(Code::unsupported,
                    "the cpu device records launches, copies and fills; step '" + step.label + "' is neither");
}

void fill_words(std::byte* to, uint64_t bytes, uint32_t word) {
  uint64_t i = 0;
  for (; i + 4 <= bytes; i += 4) std::memcpy(to + i, &word, 4);
  if (i < bytes) std::memcpy(to + i, &word, bytes - i);
}

}  // namespace

Result<std::unique_ptr<CpuCommands>> CpuCommands::record(const Program& program, uint32_t list,
                                                         std::span<const std::shared_ptr<hal::Kernel>> kernels) {
  if (list >= program.lists.size()) return make_error(Code::internal, "no such step list");
  auto out = std::make_unique<CpuCommands>();
  const Recorder numbers(program);
  const std::vector<Step>& steps = program.lists[list];
  for (uint32_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (i > 0 && step.phase < steps[i - 1].phase) return make_error(Code::internal, "phases of a list do not ascend");
    if (i > 0 && step.phase != steps[i - 1].phase) out->phase_end_.push_back(static_cast<uint32_t>(out->items_.size()));
    TERN_TRY(Item item, record_item(step, kernels, numbers, out->scalars_));
    item.step = i;
    item.first_use = static_cast<uint32_t>(out->uses_.size());
    item.uses = static_cast<uint32_t>(step.uses.size());
    for (const Use& use : step.uses) {
      RecordedUse r{use.ref.id, {}, {}};
      TERN_TRY(r.offset, numbers.number(use.ref.offset));
      TERN_TRY(r.bytes, numbers.number(use.ref.bytes));
      out->uses_.push_back(r);
    }
    out->items_.push_back(std::move(item));
  }
  if (!steps.empty()) out->phase_end_.push_back(static_cast<uint32_t>(out->items_.size()));
  out->pointers_.resize(out->uses_.size());
  out->bytes_.resize(out->uses_.size());
  out->values_.resize(out->scalars_.size() + 1);  // never empty: kernels without scalars get a valid pointer
  out->groups_.resize(out->items_.size());
  out->counters_ = std::make_unique<Counter[]>(out->items_.size());
  return out;
}

Status CpuCommands::resolve(const hal::Binding& binding) {
  const auto value = [&](const Number& n) {
    return n.block < 0 ? n.constant : binding.block[static_cast<size_t>(n.block)];
  };
  for (size_t i = 0; i < uses_.size(); ++i) {
    const RecordedUse& use = uses_[i];
    if (use.buffer >= binding.slots.size() || binding.slots[use.buffer].buffer == nullptr) {
      return make_error(Code::internal, "slot " + std::to_string(use.buffer) + " of a list is empty");
    }
    const hal::Slot& slot = binding.slots[use.buffer];
    const auto offset = static_cast<uint64_t>(value(use.offset)), bytes = static_cast<uint64_t>(value(use.bytes));
    if (slot.offset + offset + bytes > slot.buffer->size()) {
      return Error{Code::internal, "a window lies past its buffer", "slot " + std::to_string(use.buffer),
                   slot.offset + offset + bytes, slot.buffer->size()};
    }
    pointers_[i] = static_cast<std::byte*>(slot.buffer->native().handle) + slot.offset + offset;
    bytes_[i] = bytes;
  }
  for (size_t i = 0; i < scalars_.size(); ++i) {
    const int64_t v = value(scalars_[i]);
    if (v < INT32_MIN || v > int64_t{UINT32_MAX})
      return make_error(Code::limit, "a kernel's size argument does not fit 32 bits");
    values_[i] = static_cast<uint32_t>(v);
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (item.kind == Item::Kind::launch) {
      groups_[i] = value(item.groups);
      if (groups_[i] < 0 || groups_[i] > int64_t{UINT32_MAX})
        return make_error(Code::limit, "a launch has too many groups");
    } else {
      groups_[i] = (static_cast<int64_t>(bytes_[item.first_use]) + kCopyPiece - 1) / kCopyPiece;
    }
    counters_[i].next.store(0, std::memory_order_relaxed);
  }
  return ok();
}

void CpuCommands::run_item(uint32_t index, int64_t first, int64_t end) {
  const Item& item = items_[index];
  if (item.kind == Item::Kind::launch) {
    item.kernel->run(pointers_.data() + item.first_use, values_.data() + item.first_scalar,
                     static_cast<uint32_t>(first), static_cast<uint32_t>(end));
    return;
  }
  const auto from = static_cast<uint64_t>(first * kCopyPiece);
  const uint64_t bytes = std::min<uint64_t>(bytes_[item.first_use], static_cast<uint64_t>(end * kCopyPiece)) - from;
  auto* target = static_cast<std::byte*>(pointers_[item.first_use + (item.kind == Item::Kind::copy ? 1 : 0)]) + from;
  if (item.kind == Item::Kind::copy) {
    std::memmove(target, static_cast<const std::byte*>(pointers_[item.first_use]) + from, bytes);
  } else {
    fill_words(target, bytes, item.word);
  }
}

// Few groups: split statically, starting at another member for each item so that one-group items spread. Many: chunks
// from one counter, which evens out what a busy neighbour takes.
void CpuCommands::run_phase(Team& team, unsigned member, uint32_t phase) {
  const auto members = static_cast<int64_t>(team.size());
  const uint32_t begin = phase == 0 ? 0 : phase_end_[phase - 1];
  for (uint32_t i = begin; i < phase_end_[phase]; ++i) {
    const int64_t groups = groups_[i];
    if (members == 1) {
      if (groups > 0) run_item(i, 0, groups);
      continue;
    }
    if (groups < members * 8) {
      const int64_t m = (static_cast<int64_t>(member) + i - begin) % members;
      const int64_t first = groups * m / members, end = groups * (m + 1) / members;
      if (first < end) run_item(i, first, end);
      continue;
    }
    const int64_t chunk = std::max<int64_t>(1, groups / (members * 8));
    for (;;) {
      const int64_t first = counters_[i].next.fetch_add(chunk, std::memory_order_relaxed);
      if (first >= groups) break;
      run_item(i, first, std::min(groups, first + chunk));
    }
  }
}

Status CpuCommands::run(Team& team, const hal::Binding& binding, const hal::SubmitOptions& options) {
  TERN_OK(resolve(binding));
  using Clock = std::chrono::steady_clock;
  if (options.profile != nullptr) {
    // One step at a time, so that every step has a time of its own.
    options.profile->clear();
    for (uint32_t i = 0; i < items_.size(); ++i) {
      if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed))
        return make_error(Code::cancelled, "run cancelled");
      const auto start = Clock::now();
      team.run([&](unsigned member) {
        const auto n = static_cast<int64_t>(team.size());
        const int64_t first = groups_[i] * member / n, end = groups_[i] * (member + 1) / n;
        if (first < end) run_item(i, first, end);
      });
      options.profile->push_back({items_[i].step, std::chrono::duration<double>(Clock::now() - start).count()});
    }
    return ok();
  }
  // Member 0 looks at the flag and says behind which phase all leave. A phase, not a yes: who is late to leave the
  // barrier before it may read the word already, and would leave a phase early while the others wait for it.
  constexpr size_t kNever = ~size_t{0};
  std::atomic<size_t> last{kNever};
  team.run([&](unsigned member) {
    for (size_t phase = 0; phase < phase_end_.size(); ++phase) {
      if (member == 0 && last.load(std::memory_order_relaxed) == kNever && options.cancel != nullptr &&
          options.cancel->load(std::memory_order_relaxed)) {
        last.store(phase, std::memory_order_relaxed);
      }
      run_phase(team, member, static_cast<uint32_t>(phase));
      team.barrier();
      if (last.load(std::memory_order_relaxed) <= phase) return;
    }
  });
  if (last.load() != kNever) return make_error(Code::cancelled, "run cancelled");
  return ok();
}

}  // namespace tern::cpu
