// The README's own graph, taken from its text: every batch size from one compilation, on each device.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#define main readme_main
#include "example0.cpp"
#undef main

namespace tern {
namespace {

class ReadmeGraph : public testing::TestWithParam<const char*> {};

TEST_P(ReadmeGraph, RunsEveryBatchFromOneCompilation) {
  auto graph = mlp();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  const Symbol batch = graph->dims->symbols().at(0);
  ASSERT_EQ(batch.min, 1);
  ASSERT_GE(batch.max, 64);
  const auto device = open_device(GetParam());
  ASSERT_TRUE(device.ok()) << device.error().message();
  Options options;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  const auto program = compile(std::move(*graph), *device, options);
  ASSERT_TRUE(program.ok()) << program.error().message();
  std::mt19937 rng(7);
  // Small integers: sums are exact in every order, so rows are compared with ==.
  const auto numbers = [&](size_t n) {
    std::vector<float> v(n);
    for (float& f : v) f = static_cast<float>(static_cast<int>(rng() % 17) - 8);
    return v;
  };
  const std::vector<float> w1 = numbers(6), w2 = numbers(3);
  Params params = program->params();
  ASSERT_TRUE(params.set("w1", view<float>(w1, {3, 2})).ok());
  ASSERT_TRUE(params.set("w2", view<float>(w2, {1, 3})).ok());
  auto session = program->open(params);
  ASSERT_TRUE(session.ok()) << session.error().message();
  for (int64_t n = batch.min; n <= batch.max; ++n) {
    const std::vector<float> x = numbers(static_cast<size_t>(2 * n));
    std::vector<float> y(static_cast<size_t>(n), -1), want(y.size());
    for (size_t row = 0; row < want.size(); ++row) {
      for (size_t h = 0; h < 3; ++h)
        want[row] += w2[h] * std::max(0.f, w1[2 * h] * x[2 * row] + w1[2 * h + 1] * x[2 * row + 1]);
    }
    const Status done = session->run(
        {{{*program->io("x"), view<float>(x, {n, 2})}, {*program->io("y"), mutable_view<float>(y, {n, 1})}}});
    ASSERT_TRUE(done.ok()) << done.error().message();
    ASSERT_EQ(y, want) << "batch " << n;
  }
}
INSTANTIATE_TEST_SUITE_P(Devices, ReadmeGraph, testing::Values("cpu", "mean"));

TEST(Readme, TheExampleRunsAsItStands) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(readme_main(), 0);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("64 rows: 3"), std::string::npos);
}

}  // namespace
}  // namespace tern
