#include "backends/mean/device.h"

#include <string>

#include "backends/cpu/device.h"
#include "backends/mean/limits.h"
#include "hal/work.h"

namespace tern::mean_device {
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

class MeanQueue final : public hal::Queue {
 public:
  MeanQueue(std::unique_ptr<hal::Queue> inner, const MeanOptions& options, const Caps& caps)
      : inner_(std::move(inner)), options_(options), caps_(caps), work_(std::chrono::microseconds(options.delay_us)) {}
  Status start() { return work_.start(); }

  Result<hal::Ticket> submit(hal::Commands& commands, const hal::Binding& binding, std::span<const hal::Ticket> after,
                             const hal::SubmitOptions& options) override {
    auto& list = static_cast<MeanCommands&>(commands);
    if (options_.failures && strikes(options_.failures->submission))
      return make_error(Code::device_lost, "the mean device was lost (injected)");
    TERN_OK(check_submitted(*list.program, list.list, caps_, binding));
    std::vector<hal::Slot> slots(binding.slots.begin(), binding.slots.end());
    for (hal::Slot& slot : slots) {
      if (slot.buffer != nullptr) slot.buffer = &inner_of(*slot.buffer);
    }
    hal::SubmitOptions inner_options = options;
    inner_options.blocking = true;  // on the thread that works late
    // The caller's spans may be gone by then; other queues of this device share nothing with its tickets.
    return work_.add([this, &list, slots = std::move(slots),
                      block = std::vector<int64_t>(binding.block.begin(), binding.block.end()),
                      before = std::vector<hal::Ticket>(after.begin(), after.end()), inner_options]() -> Status {
      TERN_OK(inner_->submit(*list.inner, {slots, block}, before, inner_options));
      return ok();
    });
  }
  Result<hal::Ticket> upload(std::span<const std::byte> from, hal::Buffer& to, uint64_t at) override {
    TERN_OK(hal::check_transfer(to, at, from.size()));
    return later([this, from, &target = inner_of(to), at] { return inner_->upload(from, target, at); });
  }
  Result<hal::Ticket> download(const hal::Buffer& from, uint64_t at, std::span<std::byte> to) override {
    TERN_OK(hal::check_transfer(from, at, to.size()));
    return later([this, &source = inner_of(from), at, to] { return inner_->download(source, at, to); });
  }
  Result<hal::Ticket> copy(const hal::Buffer& from, uint64_t from_at, hal::Buffer& to, uint64_t to_at,
                           uint64_t bytes) override {
    TERN_OK(hal::check_transfer(from, from_at, bytes));
    TERN_OK(hal::check_transfer(to, to_at, bytes));
    return later([this, &source = inner_of(from), from_at, &target = inner_of(to), to_at, bytes] {
      return inner_->copy(source, from_at, target, to_at, bytes);
    });
  }
  void then(hal::Ticket ticket, std::function<void(Status)> done) override { work_.then(ticket, std::move(done)); }
  Status wait(hal::Ticket ticket, int64_t nanoseconds) override { return work_.wait(ticket, nanoseconds); }

 private:
  template <class F>
  hal::Ticket later(F transfer) {
    return work_.add([this, transfer]() -> Status {
      TERN_TRY(const hal::Ticket ticket, transfer());
      return inner_->wait(ticket, -1);
    });
  }

  std::unique_ptr<hal::Queue> inner_;
  MeanOptions options_;
  Caps caps_;
  hal::OrderedWork work_;  // last: ends its work before the rest goes
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
      const uint64_t available = memory().available;
      return Error{Code::out_of_memory,
                   "the mean device has no room for a buffer of " + std::to_string(bytes) + " bytes; " +
                       std::to_string(available) + " are available",
                   {},
                   bytes,
                   available};
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
    TERN_OK(check_recorded(program, list, caps()));
    auto commands = std::make_unique<MeanCommands>();
    TERN_TRY(commands->inner, inner_->record(program, list, kernels));
    commands->program = &program;
    commands->list = list;
    return std::unique_ptr<hal::Commands>(std::move(commands));
  }
  Result<std::unique_ptr<hal::Queue>> queue() override {
    TERN_TRY(std::unique_ptr<hal::Queue> queue, inner_->queue());
    auto mean = std::make_unique<MeanQueue>(std::move(queue), options_, caps());
    TERN_OK(mean->start());
    return std::unique_ptr<hal::Queue>(std::move(mean));
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
  caps.max_groups = options.max_groups;
  caps.memory_limit = options.memory_limit;
  TERN_TRY(std::unique_ptr<hal::Device> inner, cpu::open_cpu_with_caps(cpu, std::move(caps)));
  return std::unique_ptr<hal::Device>(std::make_unique<MeanDevice>(std::move(inner), options));
}

}  // namespace tern::mean_device
