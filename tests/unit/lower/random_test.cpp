// Random graphs through lower: what the paper device computes in the planned arena must be what the reference
// evaluates.
#include <gtest/gtest.h>

#include "author.h"
#include "compare.h"
#include "graphs.h"

namespace tern {
namespace {

class Random : public testing::TestWithParam<int> {};

TEST_P(Random, GraphsComputeWhatTheReferenceSays) {
  const int first = GetParam() * 40;
  for (int seed = first; seed < first + 40; ++seed) {
    Graph g = test::passed(test::Author(static_cast<uint32_t>(seed)).write(12 + seed % 30));
    (void)g.set_resident("s", false);
    LowerOptions options;
    if (seed % 2) options.ranges = {{{*g.dims->find_symbol("B"), 1, 1}}, {{*g.dims->find_symbol("B"), 1, 3}}};
    Caps caps;
    if (seed % 3 == 0) caps.max_bindings = 5;
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::expect_same(g, {{"B", 1 + seed % 6}}, static_cast<uint32_t>(seed), options, caps, 2e-3);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, Random, testing::Range(0, 6));

}  // namespace
}  // namespace tern
