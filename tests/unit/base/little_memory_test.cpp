// A process whose own limits leave it little.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/measure/memory.h"
#include "base/platform/thread.h"

namespace tern {
namespace {

uint64_t address_bytes() {
  std::ifstream in("/proc/self/statm");
  uint64_t pages = 0;
  in >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

constexpr uint64_t kLeft = uint64_t{1} << 20;  // less than a thread's stack

// For the process of one death test.
bool leave_little() {
  const rlimit limit{address_bytes() + kLeft, RLIM_INFINITY};
  return setrlimit(RLIMIT_AS, &limit) == 0;
}

class LittleMemory : public testing::Test {
 protected:
  void SetUp() override {
    // A process of its own: the one of the other tests keeps stacks of threads that have ended.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (address_bytes() > uint64_t{1} << 40) GTEST_SKIP() << "a sanitizer holds the addresses";
  }
};

TEST_F(LittleMemory, IsWhatTheLimitLeaves) {
  EXPECT_EXIT(
      {
        const bool set = leave_little();
        const SystemMemory memory = system_memory();
        _exit(set && memory.addresses <= kLeft && memory.available == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(LittleMemory, AThreadThatTheSystemRefusesIsAnError) {
  EXPECT_EXIT(
      {
        std::thread thread;
        const bool set = leave_little();
        const Status started = start_thread(thread, [] {});
        int calls = 0;
        const auto work = [&] { ++calls; };
        work_on_threads(4, work);
        if (thread.joinable()) thread.detach();
        _exit(!set ? 1 : started ? 2 : started.error().code != Code::out_of_memory ? 3 : calls != 1 ? 4 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tern
