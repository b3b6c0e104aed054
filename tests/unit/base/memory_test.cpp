// Limits of cgroups, read from trees as both versions lay them out.
#include "base/measure/memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

namespace tern {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMiB = uint64_t{1} << 20;

class SystemMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("memory_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal:       16384 kB\nMemFree:         1000 kB\nMemAvailable:    8192 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void group(const std::string& folder, const std::string& limit, const std::string& used, const std::string& stat) {
    const bool one = folder.find("cgroup/memory") != std::string::npos;
    write(folder + (one ? "/memory.limit_in_bytes" : "/memory.max"), limit + "\n");
    write(folder + (one ? "/memory.usage_in_bytes" : "/memory.current"), used + "\n");
    write(folder + "/memory.stat", stat);
  }
  SystemMemory look() const { return system_memory(root_.string()); }
  static std::string mib(uint64_t n) { return std::to_string(n * kMiB); }

  fs::path root_;
};

TEST_F(SystemMemoryTest, NoGroups) {
  EXPECT_EQ(look().total, 16 * kMiB);
  EXPECT_EQ(look().available, 8 * kMiB);
}

TEST_F(SystemMemoryTest, Version2TakesTheTightestOfAllLevels) {
  write("proc/self/cgroup", "0::/a/b\n");
  group("sys/fs/cgroup/a/b", "max", mib(3), "anon 0\nactive_file 0\n");
  group("sys/fs/cgroup/a", mib(6), mib(5), "anon 100\nactive_file " + mib(1) + "\ninactive_file " + mib(2) + "\n");
  EXPECT_EQ(look().total, 6 * kMiB);
  EXPECT_EQ(look().available, 4 * kMiB);  // 6 - (5 - 3 of files)
}

TEST_F(SystemMemoryTest, Version1AndAPathThatIsNotThere) {
  write("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/host/path\n0::/\n");
  group("sys/fs/cgroup/memory", mib(4), mib(3), "inactive_file " + mib(1) + "\ntotal_inactive_file " + mib(2) + "\n");
  EXPECT_EQ(look().total, 4 * kMiB);
  EXPECT_EQ(look().available, 3 * kMiB);
}

TEST_F(SystemMemoryTest, LimitsThatAreNone) {
  write("proc/self/cgroup", "4:memory:/\n0::/\nnonsense\n1:memory:relative\n");
  group("sys/fs/cgroup/memory", "9223372036854771712", mib(3), "");
  EXPECT_EQ(look().available, 8 * kMiB);
}

TEST_F(SystemMemoryTest, UsedAboveTheLimitLeavesNothing) {
  write("proc/self/cgroup", "0::/\n");
  group("sys/fs/cgroup", mib(2), mib(3), "");
  EXPECT_EQ(look().available, 0u);
}

TEST_F(SystemMemoryTest, WithoutProcTheSystemCallAnswers) {
  fs::remove_all(root_ / "proc");
  EXPECT_GT(look().total, 64 * kMiB);  // this machine's
  EXPECT_GT(look().available, 0u);
  EXPECT_LE(look().available, look().total);
}

TEST(HeapInUse, Grows) {
  const uint64_t before = heap_in_use();
  if (before == 0) GTEST_SKIP() << "skipped: this allocator does not tell (a sanitizer's, or none of glibc)";
  const auto block = std::make_unique<std::byte[]>(8 * kMiB);
  EXPECT_GE(heap_in_use(), before + 8 * kMiB);
  EXPECT_LT(heap_in_use(), before + 9 * kMiB);
}

}  // namespace
}  // namespace tern
