#include "backends/cpu/device.h"

#include <cstring>
#include <vector>

#include "backends/cpu/commands.h"
#include "backends/cpu/memory.h"
#include "base/cpu.h"
#include "base/measure/memory.h"
#include "hal/waited_queue.h"

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
struct Work {
  std::shared_ptr<Team> team;

  Status run(hal::Commands& commands, const hal::Binding& binding, const hal::SubmitOptions& options) const {
    return static_cast<CpuCommands&>(commands).run(*team, binding, options);
  }
  static Status upload(std::span<const std::byte> from, hal::Buffer& to, uint64_t at) {
    return move(host_memory(to) + at, from.data(), from.size());
  }
  static Status download(const hal::Buffer& from, uint64_t at, std::span<std::byte> to) {
    return move(to.data(), host_memory(from) + at, to.size());
  }
  static Status copy(const hal::Buffer& from, uint64_t from_at, hal::Buffer& to, uint64_t to_at, uint64_t bytes) {
    return move(host_memory(to) + to_at, host_memory(from) + from_at, bytes);
  }
  static Status move(std::byte* to, const std::byte* from, uint64_t bytes) {
    std::memmove(to, from, bytes);
    return ok();
  }
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
  Result<std::unique_ptr<hal::Queue>> queue() override { return hal::WaitedQueue<Work>::open({team_}); }

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
