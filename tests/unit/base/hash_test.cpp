#include "base/hash.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <random>
#include <set>
#include <vector>

namespace tern {
namespace {

TEST(Hash, OrderAndLengthMatter) {
  auto text = [](std::vector<std::string> parts) {
    Hasher h;
    for (const auto& p : parts) h.text(p);
    return h.done();
  };
  std::set<Hash> seen = {text({}),
                         text({""}),
                         text({"", ""}),
                         text({"ab"}),
                         text({"a", "b"}),
                         text({"b", "a"}),
                         text({"ab", ""}),
                         text({std::string(8, '\0')}),
                         text({std::string(9, '\0')}),
                         Hasher().u64(8).done(),
                         Hasher().u64(1).u64(0).done(),
                         Hasher().f64(0.0).u64(1).done(),
                         Hasher().f64(-0.0).done()};
  EXPECT_EQ(seen.size(), 13u);
  EXPECT_EQ(text({"ab"}), text({"ab"}));
}

TEST(Hash, HexIsStable) {
  EXPECT_EQ((Hash{0x0123456789abcdefull, 0xfedcba9876543210ull}).hex(), "0123456789abcdeffedcba9876543210");
  // Caches on disk are keyed by it: a change here invalidates them all.
  EXPECT_EQ(Hasher().text("tern").u64(7).f64(0.5).done().hex(), "3422281d7413dc9b0711897e77c7834e");
}

TEST(Hash, EveryInputBitReachesBothHalves) {
  std::mt19937_64 rng(5);
  for (size_t bit = 0; bit < 24 * 8; bit += 5) {
    double flips_hi = 0, flips_lo = 0;
    for (int n = 0; n < 64; ++n) {
      std::array<uint64_t, 3> data = {rng(), rng(), rng()};
      const Hash a = Hasher().bytes(std::as_bytes(std::span(data))).done();
      data[bit / 64] ^= 1ull << (bit % 64);
      const Hash b = Hasher().bytes(std::as_bytes(std::span(data))).done();
      flips_hi += std::popcount(a.hi ^ b.hi);
      flips_lo += std::popcount(a.lo ^ b.lo);
    }
    EXPECT_NEAR(flips_hi / 64, 32, 4) << bit;
    EXPECT_NEAR(flips_lo / 64, 32, 4) << bit;
  }
}

}  // namespace
}  // namespace tern
