#include "tern/tune/tuning.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

const std::vector<std::string> kVariants = {"t4 u1", "t2 u1", "t6 u1"};

Tuning two() {
  Tuning tuning;
  tuning.add({"matmul", "matmul {1,512}", "t6 u1", 1.5e-5, 2e-5});
  tuning.add({"attention", "attention {1}", "t1 h3 s6", 1e-6, 3e-6});
  return tuning;
}

TEST(Tuning, takes_the_usual_variant_of_what_it_does_not_know) {
  EXPECT_EQ(Tuning().choose("matmul", "matmul {1,512}", kVariants), 0u);
  EXPECT_EQ(two().choose("matmul", "matmul {1,512}", kVariants), 2u);
  EXPECT_EQ(two().choose("matmul", "matmul {2,512}", kVariants), 0u);
  EXPECT_EQ(two().choose("norm", "matmul {1,512}", kVariants), 0u);
  EXPECT_EQ(two().choose("attention", "attention {1}", kVariants), 0u);  // a variant that this build lacks
}

TEST(Tuning, a_trial_takes_the_nth_or_the_last) {
  EXPECT_EQ(Tuning::trial(0).choose("matmul", "x", kVariants), 0u);
  EXPECT_EQ(Tuning::trial(1).choose("matmul", "x", kVariants), 1u);
  EXPECT_EQ(Tuning::trial(9).choose("matmul", "x", kVariants), 2u);
}

TEST(Tuning, what_is_added_again_replaces) {
  Tuning tuning = two();
  tuning.add({"matmul", "matmul {1,512}", "t2 u1", 1e-5, 2e-5});
  EXPECT_EQ(tuning.kernels().size(), 2u);
  EXPECT_EQ(tuning.choose("matmul", "matmul {1,512}", kVariants), 1u);
}

TEST(Tuning, text_comes_back) {
  const std::string text = two().text("cpu, some processor");
  const auto back = Tuning::parse(text, "cpu, some processor");
  ASSERT_TRUE(back) << back.error().message();
  ASSERT_EQ(back->kernels().size(), 2u);
  EXPECT_EQ(back->kernels()[0].problem, "matmul {1,512}");
  EXPECT_EQ(back->kernels()[0].seconds, 1.5e-5);
  EXPECT_EQ(back->text("cpu, some processor"), text);
}

TEST(Tuning, refuses_damage_by_line_and_other_devices_by_name) {
  const std::string text = two().text("here");
  const auto elsewhere = Tuning::parse(text, "there");
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code, Code::not_found);
  EXPECT_NE(elsewhere.error().text.find("'here'"), std::string::npos);
  const std::string first = text.substr(0, text.find('\n') + 1);
  for (const std::string& bad : {std::string(), std::string("\n"), std::string("tern tuning 0\there\n"),
                                 first + "a\tb\n", first + "a\tb\tc\t1\tp\n", first + "a\tb\t1\t-1\tp\n",
                                 first + "a\tb\tnan\t1\tp\n", first + "a\tb\t1\t1\tp\tq\n"}) {
    const auto parsed = Tuning::parse(bad, "here");
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, Code::malformed) << bad;
    EXPECT_NE(parsed.error().text.find("line "), std::string::npos);
  }
  for (size_t n = 0; n < text.size(); ++n) (void)Tuning::parse(text.substr(0, n), "here");
}

}  // namespace
}  // namespace tern
