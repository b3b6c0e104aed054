#include "backends/mean/queue.h"

#include <chrono>

#include "base/platform/thread.h"
#include "base/platform/within_memory.h"

namespace tern::mean_device {

LateWork::~LateWork() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  wake_.notify_all();
  if (worker_.joinable()) worker_.join();
}

Status LateWork::start() {
  return start_thread(worker_, [this] { work(); });
}

hal::Ticket LateWork::add(std::function<Status()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  wake_.notify_one();
  return ++last_;
}

void LateWork::then(hal::Ticket ticket, std::function<void(Status)> done) {
  std::unique_lock lock(mutex_);
  if (ticket > done_) {
    callbacks_.push_back({ticket, std::move(done)});
    return;
  }
  Status status = outcome(ticket);
  lock.unlock();
  done(std::move(status));
}

Status LateWork::wait(hal::Ticket ticket, int64_t nanoseconds) {
  std::unique_lock lock(mutex_);
  const auto finished = [&] { return done_ >= ticket; };
  if (nanoseconds < 0) {
    finished_.wait(lock, finished);
  } else if (!finished_.wait_for(lock, std::chrono::nanoseconds(nanoseconds), finished)) {
    return make_error(Code::limit, "not finished in the given time");
  }
  return outcome(ticket);
}

Status LateWork::outcome(hal::Ticket ticket) const {  // with the lock held
  for (const auto& [failed, error] : failures_) {
    if (failed == ticket) return error;
  }
  return ok();
}

void LateWork::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return leaving_ || !jobs_.empty(); });
    if (jobs_.empty()) return;  // leaving, all done
    const std::function<Status()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    Status status = within_memory(job);
    lock.lock();
    ++done_;
    if (!status) {
      failures_.emplace_back(done_, status.error());
      if (failures_.size() > kFailuresKept) failures_.pop_front();
    }
    finished_.notify_all();
    call_back(lock);
  }
}

void LateWork::call_back(std::unique_lock<std::mutex>& lock) {
  for (size_t i = 0; i < callbacks_.size();) {
    if (callbacks_[i].ticket > done_) {
      ++i;
      continue;
    }
    const Callback c = std::move(callbacks_[i]);
    callbacks_.erase(callbacks_.begin() + static_cast<std::ptrdiff_t>(i));
    Status result = outcome(c.ticket);
    lock.unlock();
    c.done(std::move(result));
    lock.lock();
  }
}

}  // namespace tern::mean_device
