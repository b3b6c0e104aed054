// The queue of a device whose work is done by host calls that return when it is done.
#pragma once

#include "hal/work.h"

namespace tern::hal {

// Work gives, each as a Status when it is over:
//   run(commands, binding, options)
//   upload(from, to, at), download(from, at, to), copy(from, from_at, to, to_at, bytes): transfers that lie within
//   their buffers.
template <class Work>
class WaitedQueue final : public Queue {
 public:
  static Result<std::unique_ptr<Queue>> open(Work work) {
    auto queue = std::make_unique<WaitedQueue>(std::move(work));
    TERN_OK(queue->order_.start());
    return std::unique_ptr<Queue>(std::move(queue));
  }
  explicit WaitedQueue(Work work) : work_(std::move(work)) {}

  Result<Ticket> submit(Commands& commands, const Binding& binding, std::span<const Ticket>,
                        const SubmitOptions& options) override {
    if (options.blocking) return order_.run([&] { return work_.run(commands, binding, options); });
    // The caller's spans may be gone by the time the worker gets here.
    return order_.add([this, &commands, slots = std::vector<Slot>(binding.slots.begin(), binding.slots.end()),
                       block = std::vector<int64_t>(binding.block.begin(), binding.block.end()),
                       options] { return work_.run(commands, {slots, block}, options); });
  }
  Result<Ticket> upload(std::span<const std::byte> from, Buffer& to, uint64_t at) override {
    TERN_OK(check_transfer(to, at, from.size()));
    return order_.run_or_add([this, from, &to, at] { return from.empty() ? ok() : work_.upload(from, to, at); });
  }
  Result<Ticket> download(const Buffer& from, uint64_t at, std::span<std::byte> to) override {
    TERN_OK(check_transfer(from, at, to.size()));
    return order_.run_or_add([this, &from, at, to] { return to.empty() ? ok() : work_.download(from, at, to); });
  }
  Result<Ticket> copy(const Buffer& from, uint64_t from_at, Buffer& to, uint64_t to_at, uint64_t bytes) override {
    TERN_OK(check_transfer(from, from_at, bytes));
    TERN_OK(check_transfer(to, to_at, bytes));
    return order_.run_or_add([this, &from, from_at, &to, to_at, bytes] {
      return bytes == 0 ? ok() : work_.copy(from, from_at, to, to_at, bytes);
    });
  }
  void then(Ticket ticket, std::function<void(Status)> done) override { order_.then(ticket, std::move(done)); }
  Status wait(Ticket ticket, int64_t nanoseconds) override { return order_.wait(ticket, nanoseconds); }

 private:
  Work work_;
  OrderedWork order_;  // last: ends its work before the rest goes
};

}  // namespace tern::hal
