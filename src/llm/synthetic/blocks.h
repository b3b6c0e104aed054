// Random blocks of any format, valid and of the magnitude of weights.
#pragma once

#include <cstddef>
#include <vector>

#include "tern/format.h"

namespace tern::llm {

// A small fast generator (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): each of its
// states is a stream of its own.
class SplitMix {
 public:
  explicit SplitMix(uint64_t state) : state_(state) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

// `bytes`, a whole number of blocks, whose values have about the given mean and deviation; formats that tern does not
// encode take deviation only. Fills with all cores.
Result<std::vector<std::byte>> random_blocks(const Format& format, uint64_t bytes, float mean, float deviation,
                                             uint64_t seed);

}  // namespace tern::llm
