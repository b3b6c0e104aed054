#include "backends/mean/device.h"

#include <chrono>
#include <set>
#include <thread>

#include "backends/cpu/device.h"

namespace tern::mean {
namespace {

bool strikes(std::atomic<int>& countdown) { return countdown.load() > 0 && countdown.fetch_sub(1) == 1; }

// Bytes in use of one device.
struct Ledger {
  std::atomic<uint64_t> used{0};
  uint64_t limit = 0;
};

// Keeps its memory to itself: host() is empty, and native() answers only with a kind nobody else knows.
class MeanBuffer final : public hal::Buffer {
 public:
  MeanBuffer(std::unique_ptr<hal::Buffer> inner, std::shared_ptr<Ledger> ledger)
      : inner_(std::move(inner)), ledger_(std::move(ledger)) {}
  ~MeanBuffer() override { ledger_->used -= inner_->size(); }
  uint64_t size() const override { return inner_->size(); }
  hal::Native native() override { return {inner_->native().handle, "mean"}; }
  std::span<std::byte> host() override { return {}; }
  hal::Buffer& inner() const { return *inner_; }

 private:
  std::unique_ptr<hal::Buffer> inner_;
  std::shared_ptr<Ledger> ledger_;
};

hal::Buffer& inner_of(hal::Buffer& buffer) { return static_cast<MeanBuffer&>(buffer).inner(); }
const hal::Buffer& inner_of(const hal::Buffer& buffer) { return static_cast<const MeanBuffer&>(buffer).inner(); }

struct MeanCommands final : hal::Commands {
  std::unique_ptr<hal::Commands> inner;
  const Program* program = nullptr;
  uint32_t list = 0;
};

Result<int64_t> value_of(const Program& program, Dim dim, std::span<const int64_t> block) {
  if (const auto c = dim.constant()) return *c;
  for (size_t i = 0; i < program.block.size(); ++i) {
    if (program.block[i] == dim) return block[i];
  }
  return make_error(Code::internal, "a step uses a size that the program's dims block lacks");
}

// What a strict interface would refuse at submission.
Status check_step(const Program& program, const Step& step, const Caps& caps, const hal::Binding& binding) {
  const bool launch = std::holds_alternative<Launch>(step.what);
  std::set<std::pair<BufferId, uint64_t>> windows;
  for (const Use& use : step.uses) {
    TERN_TRY(const int64_t offset, value_of(program, use.ref.offset, binding.block));
    TERN_TRY(const int64_t bytes, value_of(program, use.ref.bytes, binding.block));
    if (!launch) continue;
    const uint64_t at = binding.slots[use.ref.id].offset + static_cast<uint64_t>(offset);
    if (at % caps.offset_alignment != 0) {
      return make_error(
          Code::invalid,
          "binding offset " + std::to_string(at) + " is no multiple of " + std::to_string(caps.offset_alignment),
          step.label);
    }
    if (static_cast<uint64_t>(bytes) > caps.max_binding_bytes) {
      return Error{Code::limit,
                   "a binding of '" + program.buffers[use.ref.id].name + "' is larger than the device takes",
                   step.label, static_cast<uint64_t>(bytes), caps.max_binding_bytes};
    }
    windows.insert({use.ref.id, at});
  }
  if (!launch) return ok();
  if (windows.size() > caps.max_bindings) {
    return make_error(Code::limit,
                      "a launch binds " + std::to_string(windows.size()) + " buffers, the device takes " +
                          std::to_string(caps.max_bindings),
                      step.label);
  }
  return ok();
}

class MeanQueue final : public hal::Queue {
 public:
  MeanQueue(std::unique_ptr<hal::Queue> inner, const MeanOptions& options, const Caps& caps)
      : inner_(std::move(inner)), options_(options), caps_(caps) {}

  Result<hal::Ticket> submit(hal::Commands& commands, const hal::Binding& binding, std::span<const hal::Ticket> after,
                             const hal::SubmitOptions& options) override {
    auto& list = static_cast<MeanCommands&>(commands);
    if (options_.failures && strikes(options_.failures->submission))
      return make_error(Code::device_lost, "the mean device was lost (injected)");
    for (const Step& step : list.program->lists[list.list]) TERN_OK(check_step(*list.program, step, caps_, binding));
    std::vector<hal::Slot> slots(binding.slots.begin(), binding.slots.end());
    for (hal::Slot& slot : slots) {
      if (slot.buffer != nullptr) slot.buffer = &inner_of(*slot.buffer);
    }
    hal::SubmitOptions late = options;
    late.blocking = false;
    TERN_TRY(const hal::Ticket ticket, inner_->submit(*list.inner, {slots, binding.block}, after, late));
    return ticket;
  }
  Result<hal::Ticket> upload(std::span<const std::byte> from, hal::Buffer& to, uint64_t at) override {
    return inner_->upload(from, inner_of(to), at);
  }
  Result<hal::Ticket> download(const hal::Buffer& from, uint64_t at, std::span<std::byte> to) override {
    return inner_->download(inner_of(from), at, to);
  }
  Result<hal::Ticket> copy(const hal::Buffer& from, uint64_t from_at, hal::Buffer& to, uint64_t to_at,
                           uint64_t bytes) override {
    return inner_->copy(inner_of(from), from_at, inner_of(to), to_at, bytes);
  }
  void then(hal::Ticket ticket, std::function<void(Status)> done) override {
    inner_->then(ticket, [delay = options_.delay_us, done = std::move(done)](Status status) {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      done(std::move(status));
    });
  }
  Status wait(hal::Ticket ticket, int64_t nanoseconds) override {
    Status status = inner_->wait(ticket, nanoseconds);
    std::this_thread::sleep_for(std::chrono::microseconds(options_.delay_us));
    return status;
  }

 private:
  std::unique_ptr<hal::Queue> inner_;
  MeanOptions options_;
  Caps caps_;
};

class MeanDevice final : public hal::Device {
 public:
  MeanDevice(std::unique_ptr<hal::Device> inner, const MeanOptions& options)
      : inner_(std::move(inner)), options_(options) {
    ledger_->limit = options.memory_limit;
  }
  const Caps& caps() const override { return inner_->caps(); }
  hal::MemoryInfo memory() const override { return {options_.memory_limit, options_.memory_limit - ledger_->used}; }
  std::span<const Candidate> native() const override { return {}; }
  std::span<const StepFuser> fusers() const override { return {}; }

  Result<std::unique_ptr<hal::Buffer>> allocate(uint64_t bytes, hal::MemoryKind kind) override {
    const bool injected = options_.failures && strikes(options_.failures->allocation);
    if (injected || bytes > ledger_->limit || ledger_->used + bytes > ledger_->limit) {
      return Error{Code::out_of_memory, "the mean device has no room for a buffer", {}, bytes, memory().available};
    }
    TERN_TRY(std::unique_ptr<hal::Buffer> buffer, inner_->allocate(bytes, kind));
    ledger_->used += bytes;
    return std::unique_ptr<hal::Buffer>(std::make_unique<MeanBuffer>(std::move(buffer), ledger_));
  }
  Result<std::shared_ptr<hal::Kernel>> load(const Program& program, const KernelDef& def) override {
    if (options_.failures && strikes(options_.failures->load))
      return make_error(Code::device_lost, "the mean device was lost (injected)");
    return inner_->load(program, def);
  }
  Result<std::unique_ptr<hal::Commands>> record(const Program& program, uint32_t list,
                                                std::span<const std::shared_ptr<hal::Kernel>> kernels) override {
    auto commands = std::make_unique<MeanCommands>();
    TERN_TRY(commands->inner, inner_->record(program, list, kernels));
    commands->program = &program;
    commands->list = list;
    return std::unique_ptr<hal::Commands>(std::move(commands));
  }
  Result<std::unique_ptr<hal::Queue>> queue() override {
    TERN_TRY(std::unique_ptr<hal::Queue> queue, inner_->queue());
    return std::unique_ptr<hal::Queue>(std::make_unique<MeanQueue>(std::move(queue), options_, caps()));
  }

 private:
  std::unique_ptr<hal::Device> inner_;
  MeanOptions options_;
  std::shared_ptr<Ledger> ledger_ = std::make_shared<Ledger>();
};

}  // namespace

Result<std::unique_ptr<hal::Device>> open_mean(const MeanOptions& options) {
  const cpu::CpuOptions cpu{options.threads, {}};
  Caps caps = cpu::detect_caps(cpu);
  caps.device = "mean";
  caps.max_lanes = 64;
  caps.subgroup = {1, 1, false};
  caps.dot4 = Dot4::none;
  caps.dot4_code_bits = 7;
  caps.lockstep = false;
  caps.workgroup_bytes = 16 * 1024;
  caps.f16_storage = false;
  caps.i64 = caps.f64 = false;
  caps.mixed_access = false;
  caps.host_visible = false;
  caps.max_binding_bytes = options.max_binding_bytes;
  caps.max_bindings = options.max_bindings;
  caps.offset_alignment = 256;
  caps.max_groups = 65535;
  caps.memory_limit = options.memory_limit;
  TERN_TRY(std::unique_ptr<hal::Device> inner, cpu::open_cpu_with_caps(cpu, std::move(caps)));
  return std::unique_ptr<hal::Device>(std::make_unique<MeanDevice>(std::move(inner), options));
}

}  // namespace tern::mean
