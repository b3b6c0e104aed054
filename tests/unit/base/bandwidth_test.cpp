#include "base/measure/bandwidth.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(Bandwidth, ReadsWholeBlocksOfEveryThread) {
  for (const unsigned threads : {1u, 2u, 3u}) {
    ReadBandwidth roof(threads, uint64_t{8} << 20);
    EXPECT_EQ(roof.bytes() % (threads * 2048 * 8), 0u);
    EXPECT_GT(roof.bytes(), uint64_t{7} << 20);
    EXPECT_LE(roof.bytes(), uint64_t{8} << 20);
  }
}

// No memory reads more than 10 TB/s: a compiler that leaves the reading out would show here.
TEST(Bandwidth, MeasuresReading) {
  ReadBandwidth roof(1, uint64_t{16} << 20);
  const double best = roof.best(3);
  EXPECT_GT(best, 1e8);
  EXPECT_LT(best, 1e13);
}

TEST(Bandwidth, SmallestBuffer) {
  ReadBandwidth roof(0, 1);
  EXPECT_EQ(roof.bytes(), 2048u * 8);
  EXPECT_GT(roof.once(), 0);
}

TEST(Bandwidth, KnowsACache) { EXPECT_GE(last_level_cache_bytes(), uint64_t{64} << 10); }

}  // namespace
}  // namespace tern
