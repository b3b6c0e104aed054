#include "backends/cpu/commands.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.h"

namespace tern::cpu {
namespace {

// Copies and fills are handed out in pieces of this many bytes.
constexpr int64_t kCopyPiece = 256 * 1024;

void fill_words(std::byte* to, uint64_t bytes, uint32_t word) {
  uint64_t i = 0;
  for (; i + 4 <= bytes; i += 4) std::memcpy(to + i, &word, 4);
  if (i < bytes) std::memcpy(to + i, &word, bytes - i);
}

}  // namespace

Result<std::unique_ptr<CpuCommands>> CpuCommands::record(const Program& program, uint32_t list,
                                                         std::span<const std::shared_ptr<hal::Kernel>> kernels) {
  auto out = std::make_unique<CpuCommands>();
  TERN_TRY(const std::vector<hal::RecordedStep> steps,
           hal::record_steps(program, list, kernels.size(), "the cpu device"));
  for (uint32_t i = 0; i < steps.size(); ++i) {
    const hal::RecordedStep& step = steps[i];
    if (i > 0 && step.phase != steps[i - 1].phase) out->phase_end_.push_back(i);
    Item item;
    item.kind = step.kind;
    if (step.kind == Item::Kind::launch) {
      item.kernel = std::dynamic_pointer_cast<CpuKernel>(kernels[step.kernel]);
      if (!item.kernel) return make_error(Code::internal, "a launch names a kernel of another device");
    }
    item.groups = step.groups;
    item.first_use = static_cast<uint32_t>(out->uses_.size());
    item.first_scalar = static_cast<uint32_t>(out->scalars_.size());
    item.word = step.word;
    item.step = step.step;
    out->uses_.insert(out->uses_.end(), step.uses.begin(), step.uses.end());
    out->scalars_.insert(out->scalars_.end(), step.scalars.begin(), step.scalars.end());
    out->items_.push_back(std::move(item));
  }
  if (!steps.empty()) out->phase_end_.push_back(static_cast<uint32_t>(steps.size()));
  out->pointers_.resize(out->uses_.size());
  out->bytes_.resize(out->uses_.size());
  out->values_.resize(out->scalars_.size() + 1);  // never empty: kernels without scalars get a valid pointer
  out->groups_.resize(out->items_.size());
  out->counters_ = std::make_unique<Counter[]>(out->items_.size());
  return out;
}

Status CpuCommands::resolve(const hal::Binding& binding) {
  for (size_t i = 0; i < uses_.size(); ++i) {
    TERN_TRY(const hal::Placed p, hal::place(uses_[i], binding));
    pointers_[i] = static_cast<std::byte*>(p.buffer->native().handle) + p.offset;
    bytes_[i] = p.bytes;
  }
  for (size_t i = 0; i < scalars_.size(); ++i) {
    TERN_TRY(values_[i], hal::scalar_word(scalars_[i], binding.block));
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (item.kind == Item::Kind::launch) {
      TERN_TRY(groups_[i], hal::groups_of(item.groups, binding.block));
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
