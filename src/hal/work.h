// Work of a queue on a host thread: in order, tickets counted, failures kept, callbacks when a ticket is done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/platform/within_memory.h"
#include "hal/device.h"

namespace tern::hal {

// Jobs are done in order, by a thread of its own or, where the caller waits anyway, by the caller. add, run and
// run_or_add are called by one thread at a time; then and wait by any. A callback may submit, wait, and end the whole.
class OrderedWork {
 public:
  // Every job that was added starts this long after its turn has come.
  explicit OrderedWork(std::chrono::microseconds delay = {}) : state_(std::make_shared<State>(delay)) {}
  ~OrderedWork();  // after all jobs are done
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  Status start();
  Ticket add(std::function<Status()> job);
  // After everything added before, on the calling thread: its failure is returned.
  template <class F>
  Result<Ticket> run(F&& job) {
    drain();
    return state_->finish(job());
  }
  // On the calling thread where nothing is in flight, else in its turn.
  template <class F>
  Result<Ticket> run_or_add(F job) {
    if (state_->busy()) return add(std::move(job));
    return state_->finish(job());
  }
  void then(Ticket ticket, std::function<void(Status)> done);
  Status wait(Ticket ticket, int64_t nanoseconds);  // negative: no limit

 private:
  struct Callback {
    Ticket ticket;
    std::function<void(Status)> done;
  };
  // The thread owns it too: a callback may end the OrderedWork that called it.
  struct State {
    explicit State(std::chrono::microseconds d) : delay(d) {}
    bool busy();
    Result<Ticket> finish(Status status);
    Status outcome(Ticket ticket) const;
    void work();
    void work_one(std::unique_lock<std::mutex>& lock);
    void call_back(std::unique_lock<std::mutex>& lock);

    static constexpr size_t kFailuresKept = 64;
    const std::chrono::microseconds delay;
    std::mutex mutex;
    std::condition_variable wake, finished;
    std::deque<std::function<Status()>> jobs;
    std::deque<std::pair<Ticket, Error>> failures;
    std::vector<Callback> callbacks;
    Ticket last = 0, done = 0;
    bool leaving = false;
  };
  void drain();
  bool on_worker() const { return worker_.get_id() == std::this_thread::get_id(); }

  std::shared_ptr<State> state_;
  std::thread worker_;
};

// A transfer of `bytes` at `at` lies within the buffer.
Status check_transfer(const Buffer& buffer, uint64_t at, uint64_t bytes);

}  // namespace tern::hal
