#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "base/cpu.h"

namespace tern {
namespace {

int read_int(const std::string& path, int fallback) {
  std::ifstream in(path);
  int value = fallback;
  if (!(in >> value)) value = fallback;
  return value;
}

// cgroup v2 "max 100000" or "150000 100000"; v1 keeps the two numbers in two files. 0: no quota.
unsigned quota_cores() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period) {
    if (quota == "max" || period <= 0) return 0;
    const double limit = std::atof(quota.c_str());
    return limit > 0 ? std::max(1u, static_cast<unsigned>(limit / period + 0.5)) : 0;
  }
  const int q = read_int("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", -1);
  const int p = read_int("/sys/fs/cgroup/cpu/cpu.cfs_period_us", 0);
  if (q <= 0 || p <= 0) return 0;
  return std::max(1u, static_cast<unsigned>(static_cast<double>(q) / p + 0.5));
}

}  // namespace

unsigned allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::set<std::pair<int, int>> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &set)) continue;
      const std::string base = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      cores.emplace(read_int(base + "physical_package_id", 0), read_int(base + "core_id", cpu));
    }
  }
  unsigned n = std::max<unsigned>(1, static_cast<unsigned>(cores.size()));
  if (const unsigned q = quota_cores()) n = std::min(n, q);
  return n;
}

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) return line.substr(std::min(line.size(), colon + 2));
  }
  return "unknown";
}

void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace tern
