#include "hal/work.h"

#include "base/platform/thread.h"

namespace tern::hal {

OrderedWork::~OrderedWork() {
  {
    std::unique_lock lock(state_->mutex);
    state_->leaving = true;
    while (on_worker() && !state_->jobs.empty()) state_->work_one(lock);
  }
  state_->wake.notify_all();
  if (on_worker())
    worker_.detach();
  else if (worker_.joinable())
    worker_.join();
}

Status OrderedWork::start() {
  return start_thread(worker_, [state = state_] { state->work(); });
}

Ticket OrderedWork::add(std::function<Status()> job) {
  const std::lock_guard lock(state_->mutex);
  state_->jobs.push_back(std::move(job));
  state_->wake.notify_one();
  return ++state_->last;
}

void OrderedWork::then(Ticket ticket, std::function<void(Status)> done) {
  std::unique_lock lock(state_->mutex);
  if (ticket > state_->done) {
    state_->callbacks.push_back({ticket, std::move(done)});
    return;
  }
  Status status = state_->outcome(ticket);
  lock.unlock();
  done(std::move(status));
}

Status OrderedWork::wait(Ticket ticket, int64_t nanoseconds) {
  std::unique_lock lock(state_->mutex);
  // A callback that waits for later work would wait for its own thread.
  while (on_worker() && state_->done < ticket && !state_->jobs.empty()) state_->work_one(lock);
  const auto finished = [&] { return state_->done >= ticket; };
  if (nanoseconds < 0) {
    state_->finished.wait(lock, finished);
  } else if (!state_->finished.wait_for(lock, std::chrono::nanoseconds(nanoseconds), finished)) {
    return make_error(Code::limit, "not finished in the given time");
  }
  return state_->outcome(ticket);
}

bool OrderedWork::State::busy() {
  const std::lock_guard lock(mutex);
  return done != last;
}

void OrderedWork::drain() {
  std::unique_lock lock(state_->mutex);
  while (on_worker() && !state_->jobs.empty()) state_->work_one(lock);
  state_->finished.wait(lock, [&] { return state_->done == state_->last; });
}

Result<Ticket> OrderedWork::State::finish(Status status) {
  const std::lock_guard lock(mutex);
  done = ++last;
  finished.notify_all();
  if (!status) return status.take_error();
  return last;
}

Status OrderedWork::State::outcome(Ticket ticket) const {  // with the lock held
  for (const auto& [failed, error] : failures) {
    if (failed == ticket) return error;
  }
  return ok();
}

void OrderedWork::State::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [&] { return leaving || !jobs.empty(); });
    if (jobs.empty()) return;  // leaving, all done
    work_one(lock);
  }
}

// What a job or a callback holds ends without the lock too: it may be the last to hold a session of this queue.
void OrderedWork::State::work_one(std::unique_lock<std::mutex>& lock) {
  std::function<Status()> job = std::move(jobs.front());
  jobs.pop_front();
  lock.unlock();
  if (delay.count() > 0) std::this_thread::sleep_for(delay);
  Status status = within_memory(job);
  job = nullptr;
  lock.lock();
  ++done;
  if (!status) {
    failures.emplace_back(done, status.error());
    if (failures.size() > kFailuresKept) failures.pop_front();
  }
  finished.notify_all();
  call_back(lock);
}

void OrderedWork::State::call_back(std::unique_lock<std::mutex>& lock) {
  for (size_t i = 0; i < callbacks.size();) {
    if (callbacks[i].ticket > done) {
      ++i;
      continue;
    }
    Callback callback = std::move(callbacks[i]);
    callbacks.erase(callbacks.begin() + static_cast<std::ptrdiff_t>(i));
    Status result = outcome(callback.ticket);
    lock.unlock();
    callback.done(std::move(result));
    callback.done = nullptr;
    lock.lock();
    i = 0;  // it may have waited for later work, whose callbacks are gone
  }
}

Status check_transfer(const Buffer& buffer, uint64_t at, uint64_t bytes) {
  if (at <= buffer.size() && bytes <= buffer.size() - at) return ok();
  return Error{Code::invalid, "a transfer reaches past its buffer", {}, at + bytes, buffer.size()};
}

}  // namespace tern::hal
