// Threads that a system may refuse (limits on processes, or on the memory for their stacks).
#pragma once

#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tern/result.h"

namespace tern {

template <class F>
Status start_thread(std::thread& thread, F&& body) {
  try {
    thread = std::thread(std::forward<F>(body));
  } catch (const std::system_error& e) {
    return make_error(Code::out_of_memory, std::string("the system starts no further thread: ") + e.what());
  }
  return ok();
}

// Runs body on as many as `threads` threads, the caller among them; on fewer where the system starts fewer, since body
// takes its work from a common counter. What body throws on any of them (memory that ends) leaves here, once all are
// done.
template <class F>
void work_on_threads(unsigned threads, F& body) {
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto caught = [&](const auto& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  caught([&] {
    others.reserve(threads);
    while (others.size() + 1 < threads) {
      std::thread thread;
      if (!start_thread(thread, [&] { caught(body); })) break;
      others.push_back(std::move(thread));
    }
    body();
  });
  for (std::thread& other : others) other.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace tern
