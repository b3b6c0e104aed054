#include "verify/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tern {
namespace {

TEST(Deviation, CountsDifferencesAgainstTheReference) {
  const std::vector<double> exact = {3, 4, 0, 0};
  const std::vector<float> device = {3, 4.5f, 0, -0.5f};
  const Deviation d = deviation("y", exact, device);
  EXPECT_DOUBLE_EQ(d.max_abs, 0.5);
  EXPECT_DOUBLE_EQ(d.rms, std::sqrt(0.5 / 4));
  EXPECT_DOUBLE_EQ(d.reference_rms, 2.5);
  EXPECT_DOUBLE_EQ(d.relative(), std::sqrt(0.5 / 4) / 2.5);
  EXPECT_EQ(d.not_finite, 0u);
}

TEST(Deviation, NanOfTheDeviceIsNoSmallDifference) {
  const std::vector<double> exact = {1, 2};
  const std::vector<float> device = {1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(deviation("y", exact, device).not_finite, 1u);
}

TEST(Deviation, AReferenceOfZerosAllowsNothing) {
  const std::vector<double> exact = {0, 0};
  EXPECT_EQ(deviation("y", exact, std::vector<float>{0, 0}).relative(), 0);
  EXPECT_TRUE(std::isinf(deviation("y", exact, std::vector<float>{0, 1e-3f}).relative()));
}

}  // namespace
}  // namespace tern
