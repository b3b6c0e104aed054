#include "backends/cpu/device.h"

#include <cstring>
#include <vector>

#include "backends/cpu/commands.h"
#include "backends/cpu/memory.h"
#include "base/cpu.h"
#include "base/measure/memory.h"
#include "hal/work.h"

namespace tern::cpu {
namespace {

class HostBuffer final : public hal::Buffer {
 public:
  explicit HostBuffer(Block block) : block_(std::move(block)) {}
  uint64_t size() const override { return block_.bytes(); }
  hal::Native native() override { return {block_.data(), "host"}; }
  std::span<std::byte> host() override { return {block_.data(), block_.bytes()}; }

 private:
  Block block_;
};

std::byte* host_memory(hal::Buffer& buffer) { return static_cast<std::byte*>(buffer.native().handle); }
const std::byte* host_memory(const hal::Buffer& buffer) { return host_memory(const_cast<hal::Buffer&>(buffer)); }

// Work is done by whoever gets there first: the caller where it waits anyway, or the queue's own thread.
class CpuQueue final : public hal::Queue {
 public:
  explicit CpuQueue(std::shared_ptr<Team> team) : team_(std::move(team)) {}
  Status start() { return work_.start(); }

  Result<hal::Ticket> submit(hal::Commands& commands, const hal::Binding& binding, std::span<const hal::Ticket>,
                             const hal::SubmitOptions& options) override {
    auto& list = static_cast<CpuCommands&>(commands);
    if (options.blocking) return work_.run([&] { return list.run(*team_, binding, options); });
    // The caller's spans may be gone by the time the worker gets here.
    return work_.add([this, &list, slots = std::vector<hal::Slot>(binding.slots.begin(), binding.slots.end()),
                      block = std::vector<int64_t>(binding.block.begin(), binding.block.end()),
                      options] { return list.run(*team_, {slots, block}, options); });
  }
  Result<hal::Ticket> upload(std::span<const std::byte> from, hal::Buffer& to, uint64_t at) override {
    TERN_OK(hal::check_transfer(to, at, from.size()));
    return move(host_memory(to) + at, from.data(), from.size());
  }
  Result<hal::Ticket> download(const hal::Buffer& from, uint64_t at, std::span<std::byte> to) override {
    TERN_OK(hal::check_transfer(from, at, to.size()));
    return move(to.data(), host_memory(from) + at, to.size());
  }
  Result<hal::Ticket> copy(const hal::Buffer& from, uint64_t from_at, hal::Buffer& to, uint64_t to_at,
                           uint64_t bytes) override {
    TERN_OK(hal::check_transfer(from, from_at, bytes));
    TERN_OK(hal::check_transfer(to, to_at, bytes));
    return move(host_memory(to) + to_at, host_memory(from) + from_at, bytes);
  }
  void then(hal::Ticket ticket, std::function<void(Status)> done) override { work_.then(ticket, std::move(done)); }
  Status wait(hal::Ticket ticket, int64_t nanoseconds) override { return work_.wait(ticket, nanoseconds); }

 private:
  Result<hal::Ticket> move(std::byte* to, const std::byte* from, uint64_t bytes) {
    return work_.run_or_add([to, from, bytes] {
      if (bytes > 0) std::memmove(to, from, bytes);
      return ok();
    });
  }

  std::shared_ptr<Team> team_;
  hal::OrderedWork work_;  // last: ends its work before the rest goes
};

class CpuDevice final : public hal::Device {
 public:
  CpuDevice(Caps caps, std::shared_ptr<Team> team) : caps_(std::move(caps)), team_(std::move(team)) {}

  const Caps& caps() const override { return caps_; }
  hal::MemoryInfo memory() const override {
    const SystemMemory memory = system_memory();
    return {memory.total, memory.available};
  }
  std::span<const Candidate> native() const override { return {}; }
  std::span<const StepFuser> fusers() const override { return {}; }

  Result<std::unique_ptr<hal::Buffer>> allocate(uint64_t bytes, hal::MemoryKind) override {
    auto block = memory_.allocate(bytes);
    if (!block) {
      Error error = block.error();
      error.have = system_memory().available;
      error.text += ": " + std::to_string(bytes) + " bytes wanted, " + std::to_string(error.have) + " available";
      return error;
    }
    return std::unique_ptr<hal::Buffer>(std::make_unique<HostBuffer>(std::move(*block)));
  }
  Result<std::shared_ptr<hal::Kernel>> load(const Program&, const KernelDef& def) override {
    auto kernel = std::make_shared<CpuKernel>();
    if (def.kind == KernelDef::Kind::kir) {
      TERN_TRY(kernel->tiles, TileProgram::make(def.code));
      return std::shared_ptr<hal::Kernel>(std::move(kernel));
    }
    if (def.kind != KernelDef::Kind::binary) {
      return make_error(Code::unsupported, "the cpu device loads object code and interprets kir; kernel '" + def.name +
                                               "' comes in another form");
    }
    TERN_TRY(kernel->object, load_object(def.code));
    TERN_TRY(void* entry, kernel->object->symbol("kernel"));
    kernel->entry = reinterpret_cast<Entry>(entry);
    return std::shared_ptr<hal::Kernel>(std::move(kernel));
  }
  Result<std::unique_ptr<hal::Commands>> record(const Program& program, uint32_t list,
                                                std::span<const std::shared_ptr<hal::Kernel>> kernels) override {
    TERN_TRY(auto commands, CpuCommands::record(program, list, kernels));
    return std::unique_ptr<hal::Commands>(std::move(commands));
  }
  Result<std::unique_ptr<hal::Queue>> queue() override {
    auto queue = std::make_unique<CpuQueue>(team_);
    TERN_OK(queue->start());
    return std::unique_ptr<hal::Queue>(std::move(queue));
  }

 private:
  Caps caps_;
  Memory memory_;
  std::shared_ptr<Team> team_;
};

}  // namespace

Result<std::unique_ptr<hal::Device>> open_cpu_with_caps(const CpuOptions& options, Caps caps) {
  const unsigned threads = options.threads != 0 ? options.threads : allowed_cores();
  if (threads > 1024)
    return make_error(Code::invalid, "more than 1024 threads make no sense; give --threads a smaller number");
  caps.workers = threads;
  auto team = std::make_shared<Team>(threads);
  TERN_OK(team->start());
  return std::unique_ptr<hal::Device>(std::make_unique<CpuDevice>(std::move(caps), std::move(team)));
}

Result<std::unique_ptr<hal::Device>> open_cpu(const CpuOptions& options) {
  return open_cpu_with_caps(options, detect_caps(options));
}

}  // namespace tern::cpu
