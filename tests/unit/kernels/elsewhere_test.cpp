#include "unit/kernels/harness.h"

namespace tern::test {

// places() leaves out the levels that cannot run here; this one says which, and why.
class Elsewhere : public LevelTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Elsewhere);  // with TERN_TEST_ON=texts
INSTANTIATE_TEST_SUITE_P(Levels, Elsewhere, testing::ValuesIn(all_levels()), level_name);

TEST_P(Elsewhere, RunsOrSaysWhatIsMissing) {}

}  // namespace tern::test
