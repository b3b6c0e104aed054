// Work of the mean device: in order, on a thread of its own, never before its delay has passed. A caller that reads,
// writes or frees early what a ticket still needs is found out.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "hal/device.h"

namespace tern::mean_device {

class LateWork {
 public:
  explicit LateWork(unsigned delay_us) : delay_us_(delay_us) {}
  ~LateWork();
  LateWork(const LateWork&) = delete;
  LateWork& operator=(const LateWork&) = delete;

  Status start();
  hal::Ticket add(std::function<Status()> job);
  void then(hal::Ticket ticket, std::function<void(Status)> done);
  Status wait(hal::Ticket ticket, int64_t nanoseconds);

 private:
  struct Callback {
    hal::Ticket ticket;
    std::function<void(Status)> done;
  };
  void work();
  void call_back(std::unique_lock<std::mutex>& lock);
  Status outcome(hal::Ticket ticket) const;

  static constexpr size_t kFailuresKept = 64;
  const unsigned delay_us_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::deque<std::function<Status()>> jobs_;
  std::deque<std::pair<hal::Ticket, Error>> failures_;
  std::vector<Callback> callbacks_;
  hal::Ticket last_ = 0, done_ = 0;
  bool leaving_ = false;
  std::thread worker_;
};

}  // namespace tern::mean_device
