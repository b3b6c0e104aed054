#include <malloc.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/measure/memory.h"

namespace tern {
namespace {

// The number behind `key` in a file of lines "key 123" or "key: 123 kB".
std::optional<uint64_t> field(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  std::string name, rest;
  uint64_t value = 0;
  while (in >> name) {
    const bool here = name == key && in >> value;
    if (here) return value;
    in.clear();
    if (!std::getline(in, rest)) break;
  }
  return std::nullopt;
}

// A file that holds one number; nothing for "max".
std::optional<uint64_t> number(const std::string& path) {
  std::ifstream in(path);
  uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

// The names of both cgroup versions' files.
struct Controller {
  std::string_view mount, limit, usage;
  std::string_view file_pages[2];  // in memory.stat
};
constexpr Controller kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current", {"active_file", "inactive_file"}};
constexpr Controller kVersion1 = {"/sys/fs/cgroup/memory",
                                  "memory.limit_in_bytes",
                                  "memory.usage_in_bytes",
                                  {"total_active_file", "total_inactive_file"}};

// Narrows `memory` by the group at `path` and by every group above it. Inside a container the path may be one of the
// host that is not there: what is mounted is the container's own group then.
void narrow(SystemMemory& memory, const std::string& root, const Controller& c, std::string path) {
  for (;;) {
    if (path == "/") path.clear();
    const std::string folder = root + std::string(c.mount) + path + "/";
    const auto limit = number(folder + std::string(c.limit));
    // Version 1 writes the largest number of pages for "no limit".
    if (limit && *limit < uint64_t{1} << 62) {
      uint64_t used = number(folder + std::string(c.usage)).value_or(0);
      for (const std::string_view kind : c.file_pages)
        used -= std::min(used, field(folder + "memory.stat", kind).value_or(0));
      memory.total = std::min(memory.total, *limit);
      memory.available = std::min(memory.available, *limit - std::min(used, *limit));
    }
    if (path.empty()) return;
    path.resize(path.rfind('/'));
  }
}

// What a process maps beside what it asks for: stacks of threads, arenas of its allocator.
constexpr uint64_t kOwnAddresses = uint64_t{32} << 20;

uint64_t left(uint64_t limit, uint64_t used) { return limit - std::min(used, limit); }

// Narrows `memory` by the limits of this process; addresses stay what they were where there is none.
void narrow_by_limits(SystemMemory& memory, const std::string& root) {
  const auto used = [&](std::string_view key) { return field(root + "/proc/self/status", key).value_or(0) * 1024; };
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    memory.addresses = left(limit.rlim_cur, used("VmSize:"));
    memory.total = std::min<uint64_t>(memory.total, limit.rlim_cur);
    memory.available = std::min(memory.available, left(memory.addresses, kOwnAddresses));
  }
  if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    memory.total = std::min<uint64_t>(memory.total, limit.rlim_cur);
    memory.available = std::min(memory.available, left(left(limit.rlim_cur, used("VmData:")), kOwnAddresses));
  }
}

}  // namespace

SystemMemory system_memory(const std::string& root) {
  SystemMemory memory;
  struct sysinfo info = {};
  if (sysinfo(&info) == 0) {
    memory.total = uint64_t{info.totalram} * info.mem_unit;
    memory.available = uint64_t{info.freeram + info.bufferram} * info.mem_unit;
  }
  // Knows more, where it is mounted: the file pages that the system would give up.
  if (const auto total = field(root + "/proc/meminfo", "MemTotal:")) {
    memory.total = *total * 1024;
    memory.available = field(root + "/proc/meminfo", "MemAvailable:").value_or(*total) * 1024;
  }
  // Lines "0::/path" (version 2) and "4:memory,cpu:/path" (version 1).
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.size() <= second + 1 || line[second + 1] != '/') continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",";
    if (kinds == ",,") narrow(memory, root, kVersion2, line.substr(second + 1));
    if (kinds.find(",memory,") != std::string::npos) narrow(memory, root, kVersion1, line.substr(second + 1));
  }
  narrow_by_limits(memory, root);
  return memory;
}

uint64_t heap_in_use() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

}  // namespace tern
