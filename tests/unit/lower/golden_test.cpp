// The grouping of small graphs as text. TERN_UPDATE_GOLDEN=1 writes the files anew; the diff is what is reviewed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "graphs.h"
#include "lower/lower.h"

namespace tern {
namespace {

void expect_golden(const std::string& name, const Graph& graph, const Caps& caps = {}) {
  const auto text = groups_text(graph, caps);
  ASSERT_TRUE(text.ok()) << text.error().message();
  const std::string path = std::string(TERN_TEST_GOLDEN) + "/lower/" + name + ".txt";
  if (std::getenv("TERN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << *text;
  std::ifstream file(path);
  std::stringstream want;
  want << file.rdbuf();
  EXPECT_EQ(*text, want.str()) << "golden " << path << " (TERN_UPDATE_GOLDEN=1 writes it)";
}

TEST(Grouping, Mlp) { expect_golden("mlp", test::mlp()); }
TEST(Grouping, LlamaLayer) { expect_golden("llama_layer", test::llama(1)); }
TEST(Grouping, LlamaLayerWithFewBindings) {
  Caps caps;
  caps.max_bindings = 6;
  expect_golden("llama_layer_6_bindings", test::llama(1), caps);
}
TEST(Grouping, ReduceAndSoftmaxChains) { expect_golden("reduce_softmax", test::reductions()); }
TEST(Grouping, ConcatAndPad) { expect_golden("concat_pad", test::concat_pad()); }
TEST(Grouping, NegativeSteps) { expect_golden("negative_steps", test::negative_steps()); }
TEST(Grouping, StatesAndCopies) { expect_golden("states", test::states()); }

}  // namespace
}  // namespace tern
