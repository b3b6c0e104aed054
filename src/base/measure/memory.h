// What this process may still take of the machine's memory, and what it has taken.
#pragma once

#include <cstdint>
#include <string>

namespace tern {

struct SystemMemory {
  uint64_t total = 0, available = 0;  // bytes; 0 where the system does not tell
  uint64_t addresses = ~uint64_t{0};  // bytes that may still be mapped, files among them; all ones: no limit
};
// The machine's memory within every cgroup that this process lies in and its own limits (ulimit -v, ulimit -d). File
// pages that the system would give up count as available where proc is mounted. root: where proc and sys are found; for
// tests.
SystemMemory system_memory(const std::string& root = "");

// Bytes that this process's allocator has given out; 0 where it does not tell.
uint64_t heap_in_use();

}  // namespace tern
