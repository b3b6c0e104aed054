// The memory roof: how fast this machine reads what no cache holds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tern {

// Bytes of the last-level cache; a guess of 32 MiB where the system does not tell.
uint64_t last_level_cache_bytes();

// Memory that several threads read side by side, each its own part; larger than the caches. Allocated and touched once,
// so that a measurement can be taken again beside every figure it is compared with.
class ReadBandwidth {
 public:
  // threads: at least 1. bytes: 0 takes four times the last-level cache, within 256 MiB and 1 GiB.
  explicit ReadBandwidth(unsigned threads, uint64_t bytes = 0);
  ReadBandwidth(const ReadBandwidth&) = delete;
  ReadBandwidth& operator=(const ReadBandwidth&) = delete;
  ~ReadBandwidth();

  // One pass of all threads over the next stretch of about 64 MiB, in bytes a second, from the first thread's start to
  // the last one's end.
  double once();
  // The best of several passes: the roof is what the machine can do, and a pass that was disturbed says nothing of it.
  double best(unsigned passes = 16);
  uint64_t bytes() const { return words_ * sizeof(uint64_t); }

 private:
  unsigned threads_;
  size_t words_ = 0, next_ = 0;
  uint64_t* data_ = nullptr;
};

}  // namespace tern
