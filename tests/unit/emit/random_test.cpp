// Random kernels: whatever the builder accepts must come out of the code generator as the interpreter runs it.
#include "unit/emit/random_kernel.h"

namespace tern::test {

using namespace kir;

class RandomKernels : public LevelTest {};
INSTANTIATE_TEST_SUITE_P(Levels, RandomKernels, testing::ValuesIn(base_levels()), level_name);

TEST_P(RandomKernels, CompiledCodeDoesWhatTheInterpreterDoes) {
  const std::string& isa = GetParam();
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomKernel maker(seed, caps_for(isa));
    const auto kernel = maker.make();
    ASSERT_TRUE(kernel.ok()) << kernel.error().message();
    Bytes m = random_inputs(seed, maker.lanes() * 5);
    // Bindings and dims that the kernel ended up without are still passed: the entry takes them by position.
    differ(kernel, isa, m, {static_cast<uint32_t>(seed % 7)}, 5);
    if (HasFatalFailure()) return;
  }
}

}  // namespace tern::test
