// The machinery itself: an emulator that runs anything would prove nothing about levels.
#include "unit/emit/harness.h"

namespace tern::test {

using namespace kir;

TEST(Machine, EmulatedProcessorsHaveNoMoreThanTheirLevel) {
  const std::string level = "neon", above = "neon+dotprod";
  if (!tested(level) || !missing(level).empty() || runs_on_this_processor(level)) GTEST_SKIP() << "nothing is emulated";
  B b("products", 16, caps_for(above));
  Buffer x = buffer("x", u32), y = buffer("y", i32, write);
  y.store(lane(), dot4(0, x[lane()] & 0x7f7f7f7f, x[lane()]));
  auto kernel = b.finish();
  ASSERT_TRUE(kernel.ok());
  const auto object = compiler().compile(serialize(*kernel), cpu_target(above));
  ASSERT_TRUE(object.ok()) << object.error().message();
  std::vector<uint32_t> in(16, 0x02020202), out(16);
  const LoadedCode::Memory memory[] = {{in.data(), 64, false}, {out.data(), 64}};
  const WireRange all[] = {{0, 1}};
  const auto run_as = [&](const std::string& isa) { return LoadedCode::load(*object, isa)->run(memory, {}, all); };
  const Status refused = run_as(level);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("signal 4"), std::string::npos) << refused.error().text;  // SIGILL
  const Status done = run_as(above);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(out, std::vector<uint32_t>(16, 16));
}

}  // namespace tern::test
