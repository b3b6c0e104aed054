#include "rewrites.h"

namespace tern {
namespace {

Graph sample() {
  return std::move(*parse_graph(R"(graph {
  %x = input "x" : f32[2]
  %0 = constant() {value = f32[] {2}} : f32[]
  %1 = constant() {value = f32[] {0.5}} : f32[]
  %2 = mul(%0, %1) : f32[]
  %3 = broadcast(%2) {shape = [2], axes = []} : f32[2]
  %4 = mul(%3, %x) : f32[2]
  %5 = exp(%4) : f32[2]
  %6 = exp(%x) : f32[2]
  %7 = add(%5, %6) : f32[2]
  output "o" %7
})"));
}

TEST(Pipeline, RunsInOrderAndReportsChanges) {
  Graph g = sample();
  PassOptions options;
  options.verify = true;
  std::vector<std::string> changed;
  options.changed = [&](std::string_view pass, const Graph&) { changed.emplace_back(pass); };
  auto timings = run_passes(g, {}, default_passes(), options);
  ASSERT_TRUE(timings.ok()) << timings.error().message();
  EXPECT_EQ(timings->size(), default_passes().size());
  EXPECT_EQ(print(g), R"(graph {
  %x = input "x" : f32[2]
  %0 = exp(%x) : f32[2]
  %1 = add(%0, %0) : f32[2]
  output "o" %1
}
)");
  EXPECT_EQ(changed.front(), "canonicalise");
  size_t reported = 0;
  for (const PassTiming& t : *timings) {
    EXPECT_GE(t.seconds, 0);
    reported += t.changed;
  }
  EXPECT_EQ(reported, changed.size());
  EXPECT_LT(changed.size(), default_passes().size());
  // A second run finds nothing to do.
  changed.clear();
  ASSERT_TRUE(run_passes(g, {}, default_passes(), options).ok());
  EXPECT_TRUE(changed.empty());
}

TEST(Pipeline, SkipsByName) {
  Graph g = sample();
  PassOptions options;
  options.skip = {"simplify", "fold"};
  auto timings = run_passes(g, {}, default_passes(), options);
  ASSERT_TRUE(timings.ok());
  for (const PassTiming& t : *timings) EXPECT_TRUE(t.name != "simplify" && t.name != "fold");
  EXPECT_NE(print(g).find("mul"), std::string::npos);
  options.skip = {"simplfy"};
  EXPECT_EQ(run_passes(g, {}, default_passes(), options).error().text, "no pass is named 'simplfy'");
}

Status breaks(Graph& g, const Target&) {
  g.guards.clear();
  return ok();
}
Status fails(Graph&, const Target&) { return make_error(Code::unsupported, "cannot", "node 3"); }

TEST(Pipeline, NamesThePassThatFails) {
  auto g = parse_graph(R"(graph {
  symbol S in [1, 9]
  symbol T in [1, 9]
  %x = input "x" : f32[T]
  %y = input "y" : f32[S]
  %0 = add(%x, %y) : f32[T]
  output "o" %0
})");
  ASSERT_TRUE(g.ok());
  const Pass passes[] = {{"breaks", breaks}}, failing[] = {{"fails", fails}};
  PassOptions options;
  options.verify = true;
  const auto broken = run_passes(*g, {}, passes, options);
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().where, "pass breaks left a graph that does not verify, node 2 (add)");
  EXPECT_EQ(run_passes(*g, {}, failing).error().message(), "cannot (pass fails, node 3)");
}

}  // namespace
}  // namespace tern
