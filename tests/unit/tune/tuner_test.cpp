#include "tern/tune/tuner.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

StepProfile step(const char* problem, const char* variant, double seconds) {
  return {"blk.0", "k", seconds, 0, 0, problem, "matmul", variant};
}

TEST(Tuner, tells_when_nothing_new_comes_up) {
  Tuner tuner;
  const std::vector<StepProfile> first = {step("p", "a", 2), step("q", "a", 2)},
                                 second = {step("p", "b", 1), step("q", "a", 2)};
  EXPECT_TRUE(tuner.add(first));
  EXPECT_FALSE(tuner.add(first));
  EXPECT_TRUE(tuner.add(second));
  EXPECT_FALSE(tuner.add(second));
  EXPECT_EQ(tuner.variants(), 2u);  // q has one only
  const std::vector<StepProfile> copies = {{"blk.0", "copy", 1, 0, 0, {}, {}, {}}};
  EXPECT_FALSE(tuner.add(copies));
}

TEST(Tuner, takes_what_is_faster_by_more_than_the_margin_by_medians) {
  Tuner tuner;
  for (const double noise : {1.0, 1.1, 5.0, 0.2, 1.0}) {
    const std::vector<StepProfile> usual = {step("p", "a", 10 * noise), step("q", "a", 10 * noise),
                                            step("r", "a", 10 * noise)};
    const std::vector<StepProfile> other = {step("p", "b", 9 * noise), step("q", "b", 9.9 * noise),
                                            step("r", "b", 11 * noise)};
    tuner.add(usual), tuner.add(other);
  }
  const Tuning best = tuner.best();
  ASSERT_EQ(best.kernels().size(), 1u);
  EXPECT_EQ(best.kernels()[0].problem, "p");
  EXPECT_EQ(best.kernels()[0].variant, "b");
  EXPECT_DOUBLE_EQ(best.kernels()[0].seconds, 9);
  EXPECT_DOUBLE_EQ(best.kernels()[0].usual_seconds, 10);
}

TEST(Tuner, what_was_kept_stays_unless_it_was_timed_anew) {
  Tuning kept;
  kept.add({"matmul", "p", "c", 1, 2});
  kept.add({"matmul", "other model's", "c", 1, 2});
  Tuner tuner;
  const std::vector<StepProfile> usual = {step("p", "a", 10)}, slower = {step("p", "c", 12)};
  tuner.add(usual), tuner.add(slower);
  const Tuning merged = tuner.merged(kept);
  ASSERT_EQ(merged.kernels().size(), 1u);
  EXPECT_EQ(merged.kernels()[0].problem, "other model's");
}

}  // namespace
}  // namespace tern
