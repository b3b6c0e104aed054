// Work of a queue on a host thread: in order, tickets counted, failures kept, callbacks when a ticket is done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/platform/within_memory.h"
#include "hal/device.h"

namespace tern::hal {

// Jobs are done in order, by a thread of its own or, where the caller waits anyway, by the caller. add, run and
// run_or_add are called by one thread at a time; then and wait by any.
class OrderedWork {
 public:
  // Every job that was added starts this long after its turn has come.
  explicit OrderedWork(std::chrono::microseconds delay = {}) : delay_(delay) {}
  ~OrderedWork();  // after all jobs are done
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  Status start();
  Ticket add(std::function<Status()> job);
  // After everything added before, on the calling thread: its failure is returned.
  template <class F>
  Result<Ticket> run(F&& job) {
    drain();
    return finish(job());
  }
  // On the calling thread where nothing is in flight, else in its turn.
  template <class F>
  Result<Ticket> run_or_add(F job) {
    if (busy()) return add(std::move(job));
    return finish(job());
  }
  void then(Ticket ticket, std::function<void(Status)> done);
  Status wait(Ticket ticket, int64_t nanoseconds);  // negative: no limit

 private:
  struct Callback {
    Ticket ticket;
    std::function<void(Status)> done;
  };
  bool busy();
  void drain();
  Result<Ticket> finish(Status status);
  Status outcome(Ticket ticket) const;
  void work();
  void call_back(std::unique_lock<std::mutex>& lock);

  static constexpr size_t kFailuresKept = 64;
  const std::chrono::microseconds delay_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::deque<std::function<Status()>> jobs_;
  std::deque<std::pair<Ticket, Error>> failures_;
  std::vector<Callback> callbacks_;
  Ticket last_ = 0, done_ = 0;
  bool leaving_ = false;
  std::thread worker_;
};

// A transfer of `bytes` at `at` lies within the buffer.
Status check_transfer(const Buffer& buffer, uint64_t at, uint64_t bytes);

}  // namespace tern::hal
