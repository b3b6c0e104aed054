#include "backends/cpu/team.h"

#include <string>

#include "base/cpu.h"
#include "base/platform/thread.h"

namespace tern::cpu {
namespace {

// The machine may be shared whatever our own thread count is: after this many pauses a waiter gives its core away.
constexpr int kPausesBeforeYield = 200;
// Yields before an idle member goes to sleep in the kernel; a decode loop submits again long before.
constexpr int kYieldsBeforeSleep = 50;

class Waiter {
 public:
  // True when it is time to sleep.
  bool wait() {
    if (++pauses_ <= kPausesBeforeYield) {
      cpu_pause();
      return false;
    }
    std::this_thread::yield();
    return ++yields_ > kYieldsBeforeSleep;
  }

 private:
  int pauses_ = 0, yields_ = 0;
};

}  // namespace

Team::Team(unsigned threads) : size_(threads == 0 ? 1 : threads) {}

Status Team::start() {
  for (unsigned m = 1; m < size_; ++m) {
    std::thread thread;
    if (const Status started = start_thread(thread, [this, m] { member_loop(m); }); !started) {
      return make_error(started.error().code, "of " + std::to_string(size_) + " threads only " + std::to_string(m) +
                                                  " start; give --threads a smaller number: " + started.error().text);
    }
    threads_.push_back(std::move(thread));
  }
  return ok();
}

Team::~Team() {
  generation_.fetch_or(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void Team::member_loop(unsigned member) {
  uint32_t seen = 0;
  for (;;) {
    Waiter waiter;
    uint32_t now;
    while ((now = generation_.load(std::memory_order_acquire)) == seen) {
      if (waiter.wait()) generation_.wait(seen, std::memory_order_acquire);
    }
    if (now & 1) return;
    seen = now;
    (*body_)(member);
    working_.fetch_sub(1, std::memory_order_release);
  }
}

void Team::run(const std::function<void(unsigned)>& body) {
  const std::lock_guard one_run(running_);
  if (size_ == 1) {
    body(0);
    return;
  }
  body_ = &body;
  working_.store(size_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(2, std::memory_order_release);
  generation_.notify_all();
  body(0);
  Waiter waiter;
  while (working_.load(std::memory_order_acquire) != 0) waiter.wait();
}

void Team::barrier() {
  if (size_ == 1) return;
  const uint32_t epoch = epoch_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    epoch_.store(epoch + 1, std::memory_order_release);
    return;
  }
  Waiter waiter;
  while (epoch_.load(std::memory_order_acquire) == epoch) waiter.wait();
}

}  // namespace tern::cpu
