// The instruction sets that kernels are tested at, and which of them run here.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tern::test {

struct Level {
  std::string_view isa;      // as Caps::isa
  std::string_view machine;  // the emulator's processor that has this and little more; empty: never emulated
  bool base;                 // differs from other levels in more than the products of bytes
};
std::span<const Level> levels();
const Level& level_of(std::string_view isa);

bool runs_on_this_processor(std::string_view isa);
// Empty: objects of this level can be run. Else one sentence that says what is missing.
std::string missing(std::string_view isa);
// What the environment promises, TERN_TEST_REQUIRE, must be there: "aarch64".
bool promised(std::string_view isa);

// TERN_TEST_ON chooses: "host", "emulator"; both where the environment does not say.
bool tested(std::string_view isa);
// The isa of every level tested, or of those that differ from each other in more than the products of bytes.
std::vector<std::string> all_levels();
std::vector<std::string> base_levels();

// A test that runs once for each level; skipped, with the reason, where the level cannot run.
class LevelTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string why = missing(GetParam());
    if (why.empty()) return;
    if (promised(GetParam())) FAIL() << GetParam() << " was promised: " << why;
    GTEST_SKIP() << "skipped: " << why;
  }
};
// "x86-64-v3+avxvnni" as a name of a test.
std::string level_name(const testing::TestParamInfo<std::string>& level);

}  // namespace tern::test
