#include "hal/work.h"

#include "base/platform/thread.h"

namespace tern::hal {

OrderedWork::~OrderedWork() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  wake_.notify_all();
  if (worker_.joinable()) worker_.join();
}

Status OrderedWork::start() {
  return start_thread(worker_, [this] { work(); });
}

Ticket OrderedWork::add(std::function<Status()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  wake_.notify_one();
  return ++last_;
}

void OrderedWork::then(Ticket ticket, std::function<void(Status)> done) {
  std::unique_lock lock(mutex_);
  if (ticket > done_) {
    callbacks_.push_back({ticket, std::move(done)});
    return;
  }
  Status status = outcome(ticket);
  lock.unlock();
  done(std::move(status));
}

Status OrderedWork::wait(Ticket ticket, int64_t nanoseconds) {
  std::unique_lock lock(mutex_);
  const auto finished = [&] { return done_ >= ticket; };
  if (nanoseconds < 0) {
    finished_.wait(lock, finished);
  } else if (!finished_.wait_for(lock, std::chrono::nanoseconds(nanoseconds), finished)) {
    return make_error(Code::limit, "not finished in the given time");
  }
  return outcome(ticket);
}

bool OrderedWork::busy() {
  const std::lock_guard lock(mutex_);
  return done_ != last_;
}

void OrderedWork::drain() {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return done_ == last_; });
}

Result<Ticket> OrderedWork::finish(Status status) {
  const std::lock_guard lock(mutex_);
  done_ = ++last_;
  finished_.notify_all();
  if (!status) return status.take_error();
  return last_;
}

Status OrderedWork::outcome(Ticket ticket) const {  // with the lock held
  for (const auto& [failed, error] : failures_) {
    if (failed == ticket) return error;
  }
  return ok();
}

void OrderedWork::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return leaving_ || !jobs_.empty(); });
    if (jobs_.empty()) return;  // leaving, all done
    const std::function<Status()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
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

void OrderedWork::call_back(std::unique_lock<std::mutex>& lock) {
  for (size_t i = 0; i < callbacks_.size();) {
    if (callbacks_[i].ticket > done_) {
      ++i;
      continue;
    }
    const Callback callback = std::move(callbacks_[i]);
    callbacks_.erase(callbacks_.begin() + static_cast<std::ptrdiff_t>(i));
    Status result = outcome(callback.ticket);
    lock.unlock();
    callback.done(std::move(result));
    lock.lock();
  }
}

Status check_transfer(const Buffer& buffer, uint64_t at, uint64_t bytes) {
  if (at <= buffer.size() && bytes <= buffer.size() - at) return ok();
  return Error{Code::invalid, "a transfer reaches past its buffer", {}, at + bytes, buffer.size()};
}

}  // namespace tern::hal
