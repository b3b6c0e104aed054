#include "unit/kernels/harness.h"

namespace tern::test {

// places() leaves out the levels that cannot run here; this one says which, and why.
class Elsewhere : public LevelTest {};
INSTANTIATE_TEST_SUITE_P(Levels, Elsewhere, testing::ValuesIn(all_levels()), level_name);

TEST_P(Elsewhere, RunsOrSaysWhatIsMissing) {}

}  // namespace tern::test
