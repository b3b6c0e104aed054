// Threads that a system may refuse (limits on processes, or on the memory for their stacks).
#pragma once

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
// takes its work from a common counter.
template <class F>
void work_on_threads(unsigned threads, F& body) {
  std::vector<std::thread> others;
  while (others.size() + 1 < threads) {
    std::thread thread;
    if (!start_thread(thread, [&body] { body(); })) break;
    others.push_back(std::move(thread));
  }
  body();
  for (std::thread& other : others) other.join();
}

}  // namespace tern
