#include "backends/cpu/device.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "backends/cpu/commands.h"
#include "backends/cpu/memory.h"
#include "base/cpu.h"
#include "base/measure/memory.h"
#include "base/platform/thread.h"
#include "base/platform/within_memory.h"

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

const std::byte* host_memory(const hal::Buffer& buffer) {
  return static_cast<const std::byte*>(const_cast<hal::Buffer&>(buffer).native().handle);
}

Status check_range(const hal::Buffer& buffer, uint64_t at, uint64_t bytes) {
  if (at <= buffer.size() && bytes <= buffer.size() - at) return ok();
  return Error{Code::invalid, "a transfer reaches past its buffer", {}, at + bytes, buffer.size()};
}

// Work is done in order, by whoever gets there first: the caller of a blocking submit or of wait(), or the queue's own
// thread.
class CpuQueue final : public hal::Queue {
 public:
  explicit CpuQueue(std::shared_ptr<Team> team) : team_(std::move(team)) {}
  Status start() {
    return start_thread(worker_, [this] { work(); });
  }
  ~CpuQueue() override {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    wake_.notify_all();
    if (worker_.joinable()) worker_.join();
  }

  Result<hal::Ticket> submit(hal::Commands& commands, const hal::Binding& binding, std::span<const hal::Ticket>,
                             const hal::SubmitOptions& options) override {
    auto& list = static_cast<CpuCommands&>(commands);
    if (!options.blocking) {
      // The caller's spans may be gone by the time the worker gets here.
      auto slots = std::make_shared<std::vector<hal::Slot>>(binding.slots.begin(), binding.slots.end());
      auto block = std::make_shared<std::vector<int64_t>>(binding.block.begin(), binding.block.end());
      return enqueue([this, &list, slots, block, options] { return list.run(*team_, {*slots, *block}, options); });
    }
    drain();
    return finish_now(list.run(*team_, binding, options));  // the caller is the only one who submits
  }
  Result<hal::Ticket> upload(std::span<const std::byte> from, hal::Buffer& to, uint64_t at) override {
    TERN_OK(check_range(to, at, from.size()));
    std::byte* target = static_cast<std::byte*>(to.native().handle) + at;
    return now_or_queued([from, target] {
      if (!from.empty()) std::memcpy(target, from.data(), from.size());
      return ok();
    });
  }
  Result<hal::Ticket> download(const hal::Buffer& from, uint64_t at, std::span<std::byte> to) override {
    TERN_OK(check_range(from, at, to.size()));
    const std::byte* source = host_memory(from) + at;
    return now_or_queued([source, to] {
      if (!to.empty()) std::memcpy(to.data(), source, to.size());
      return ok();
    });
  }
  Result<hal::Ticket> copy(const hal::Buffer& from, uint64_t from_at, hal::Buffer& to, uint64_t to_at,
                           uint64_t bytes) override {
    TERN_OK(check_range(from, from_at, bytes));
    TERN_OK(check_range(to, to_at, bytes));
    std::byte* target = static_cast<std::byte*>(to.native().handle) + to_at;
    const std::byte* source = host_memory(from) + from_at;
    return now_or_queued([target, source, bytes] {
      if (bytes > 0) std::memmove(target, source, bytes);
      return ok();
    });
  }
  void then(hal::Ticket ticket, std::function<void(Status)> done) override {
    std::unique_lock lock(mutex_);
    if (ticket > done_) {
      callbacks_.push_back({ticket, std::move(done)});
      return;
    }
    Status status = outcome(ticket);
    lock.unlock();
    done(std::move(status));
  }
  Status wait(hal::Ticket ticket, int64_t nanoseconds) override {
    std::unique_lock lock(mutex_);
    const auto finished = [&] { return done_ >= ticket; };
    if (nanoseconds < 0) {
      finished_.wait(lock, finished);
    } else if (!finished_.wait_for(lock, std::chrono::nanoseconds(nanoseconds), finished)) {
      return make_error(Code::limit, "not finished in the given time");
    }
    return outcome(ticket);
  }

 private:
  struct Job {
    hal::Ticket ticket;
    std::function<Status()> run;
  };
  struct Callback {
    hal::Ticket ticket;
    std::function<void(Status)> done;
  };

  Result<hal::Ticket> enqueue(std::function<Status()> run) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({++last_, std::move(run)});
    wake_.notify_one();
    return last_;
  }
  // At once where nothing is in flight, else in its turn.
  Result<hal::Ticket> now_or_queued(std::function<Status()> job) {
    {
      const std::lock_guard lock(mutex_);
      if (done_ != last_) {
        jobs_.push_back({++last_, std::move(job)});
        wake_.notify_one();
        return last_;
      }
    }
    return finish_now(job());
  }
  // Everything submitted before is done.
  void drain() {
    std::unique_lock lock(mutex_);
    const hal::Ticket last = last_;
    finished_.wait(lock, [&] { return done_ >= last; });
  }
  Result<hal::Ticket> finish_now(Status status) {
    const std::lock_guard lock(mutex_);
    done_ = ++last_;
    finished_.notify_all();
    if (!status) return status.take_error();
    return last_;
  }
  Status outcome(hal::Ticket ticket) {  // with the lock held
    for (const auto& [failed, error] : failures_) {
      if (failed == ticket) return error;
    }
    return ok();
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return leaving_ || !jobs_.empty(); });
      if (jobs_.empty()) return;  // leaving, all done
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      Status status = within_memory(job.run);
      lock.lock();
      if (!status) {
        failures_.emplace_back(job.ticket, status.error());
        if (failures_.size() > kFailuresKept) failures_.pop_front();
      }
      done_ = job.ticket;
      finished_.notify_all();
      for (size_t i = 0; i < callbacks_.size();) {
        if (callbacks_[i].ticket > done_) {
          ++i;
          continue;
        }
        Callback c = std::move(callbacks_[i]);
        callbacks_.erase(callbacks_.begin() + static_cast<std::ptrdiff_t>(i));
        Status result = outcome(c.ticket);
        lock.unlock();
        c.done(std::move(result));
        lock.lock();
      }
    }
  }

  static constexpr size_t kFailuresKept = 64;
  std::shared_ptr<Team> team_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::deque<Job> jobs_;
  std::deque<std::pair<hal::Ticket, Error>> failures_;
  std::vector<Callback> callbacks_;
  hal::Ticket last_ = 0, done_ = 0;
  bool leaving_ = false;
  std::thread worker_;
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
