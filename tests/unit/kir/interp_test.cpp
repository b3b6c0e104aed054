// The interpreter's values, and everything that it must catch.
#include "kir_test.h"

namespace tern::kir {
namespace {

constexpr uint32_t kLanes = 8;

// One group writes lane's value into workgroup memory and reads a neighbour's; `fence` says whether a barrier stands
// between.
Result<Kernel> neighbour(bool fence) {
  B b("neighbour", kLanes, test_caps());
  Buffer y = buffer("y", u32, Access::write);
  Shared s = shared("s", u32, kLanes);
  s.store(lane(), lane() * 10);
  if (fence) barrier();
  y.store(lane(), s[(lane() + 1) % kLanes]);
  return b.finish();
}

TEST(Races, MissingBarrierOnWorkgroupMemoryIsFound) {
  auto bad = neighbour(false), good = neighbour(true);
  ASSERT_OK(bad);
  ASSERT_OK(good);
  std::vector<uint32_t> y(kLanes);
  EXPECT_OK(run_kernel(*good, {bytes_of(y)}, {}, 1));
  for (uint32_t l = 0; l < kLanes; ++l) EXPECT_EQ(y[l], (l + 1) % kLanes * 10);
  const std::string text = error_text(run_kernel(*bad, {bytes_of(y)}, {}, 1));
  EXPECT_MENTIONS(text, "race on s[1]");
  EXPECT_MENTIONS(text, "lane 0 reads what lane 1 wrote");
  EXPECT_MENTIONS(text, "kernel neighbour");
  EXPECT_MENTIONS(text, "wg_load");
}

TEST(Races, WriteAfterReadIsFound) {
  for (bool fence : {false, true}) {
    B b("shift", kLanes, test_caps());
    Buffer y = buffer("y", u32, Access::write);
    Shared s = shared("s", u32, kLanes);
    s.store(lane(), lane());
    barrier();
    V v = s[(lane() + 1) % kLanes];
    if (fence) barrier();
    s.store(lane(), v);
    y.store(lane(), v);
    auto kernel = b.finish();
    ASSERT_OK(kernel);
    std::vector<uint32_t> out(kLanes);
    const std::string text = error_text(run_kernel(*kernel, {bytes_of(out)}, {}, 1));
    if (fence) {
      EXPECT_EQ(text, "");
    } else {
      EXPECT_MENTIONS(text, "race on s[0]: lane 0 writes what lane 7 read");
    }
  }
}

TEST(Races, TwoLanesWriteOneGlobalWord) {
  B b("clash", kLanes, test_caps());
  Buffer y = buffer("y", u32, Access::write);
  y.store(lane() / 2, lane());
  auto kernel = b.finish();
  ASSERT_OK(kernel);
  std::vector<uint32_t> y_data(kLanes);
  EXPECT_MENTIONS(error_text(run_kernel(*kernel, {bytes_of(y_data)}, {}, 1)),
                  "race on y[0]: lane 1 writes what lane 0 wrote");
  EXPECT_OK(interpret(*kernel, std::vector<InterpBuffer>{bytes_of(y_data)}, {}, 0, 1, {.detect_races = false}));
}

TEST(Races, NeighbouringBytesAreNoClash) {
  B b("bytes", kLanes, test_caps());
  Buffer y = buffer("y", u8, Access::write);
  y.store(lane(), lane() + 250);
  auto kernel = b.finish();
  ASSERT_OK(kernel);
  std::vector<uint8_t> out(kLanes);
  EXPECT_OK(run_kernel(*kernel, {bytes_of(out)}, {}, 1));
  EXPECT_EQ(out[5], 255);
  EXPECT_EQ(out[6], 0);  // the low bits
}

TEST(Races, GroupsMustNotShareWrittenWords) {
  B b("groups", 4, test_caps());
  Buffer y = buffer("y", u32, Access::update);
  If(lane() == 0, [&] { y.store(0, y[0] + group()); });
  auto kernel = b.finish();
  ASSERT_OK(kernel);
  std::vector<uint32_t> out(4);
  EXPECT_OK(run_kernel(*kernel, {bytes_of(out)}, {}, 1));
  EXPECT_MENTIONS(error_text(run_kernel(*kernel, {bytes_of(out)}, {}, 2)), "group 1 reads what group 0 wrote");
}

TEST(Interp, UninitialisedWorkgroupReadsAreFoundInEveryGroup) {
  B b("garbage", 4, test_caps());
  Buffer y = buffer("y", f32, Access::write);
  Shared s = shared("s", f32, 4);
  If(group() == 0, [&] { s.store(lane(), 1.f); });  // the second group inherits nothing
  y.store(group() * 4 + lane(), s[lane()]);
  auto kernel = b.finish();
  ASSERT_OK(kernel);
  std::vector<float> out(8);
  EXPECT_OK(run_kernel(*kernel, {bytes_of(out)}, {}, 1));
  EXPECT_MENTIONS(error_text(run_kernel(*kernel, {bytes_of(out)}, {}, 2)), "lane 0 reads s[0], which nobody wrote");
}

TEST(Interp, IndicesOutsideAreFoundBeforeMemoryIsTouched) {
  B b("outside", 4, test_caps());
  Buffer x = buffer("x", f16), y = buffer("y", f32, Access::write);
  V i = group() * 4 + lane();
  y.store(i, x[i + dim("skip")]);
  auto kernel = b.finish();
  ASSERT_OK(kernel);
  std::vector<uint16_t> half(8, 0x3c00);
  std::vector<float> out(8);
  EXPECT_OK(run_kernel(*kernel, {bytes_of(half), bytes_of(out)}, {0}, 2));
  EXPECT_EQ(out[7], 1.f);
  const std::string text = error_text(run_kernel(*kernel, {bytes_of(half), bytes_of(out)}, {1}, 2));
  EXPECT_MENTIONS(text, "x[8] of lane 3 lies outside its 8 elements");
  EXPECT_MENTIONS(text, "group 1");
  EXPECT_MENTIONS(error_text(run_kernel(*kernel, {bytes_of(half), bytes_of(out)}, {0xffffffffu}, 1)), "outside");
  EXPECT_MENTIONS(error_text(run_kernel(*kernel, {bytes_of(half)}, {0}, 1)), "1 buffers for 2 bindings");
  EXPECT_MENTIONS(error_text(run_kernel(*kernel, {bytes_of(half), bytes_of(out)}, {}, 1)), "0 scalars for 1 dims");
}

TEST(Interp, DivisionByZeroNamesTheLaneUnlessItIsOff) {
  for (bool guarded : {false, true}) {
    B b("divide", 4, test_caps());
    Buffer y = buffer("y", u32, Access::write);
    const auto body = [&] { y.store(lane(), V(12) / (lane() - 1)); };
    if (guarded) {
      If(lane() != 1, body);
    } else {
      body();
    }
    auto kernel = b.finish();
    ASSERT_OK(kernel);
    std::vector<uint32_t> out(4, 7);
    const std::string text = error_text(run_kernel(*kernel, {bytes_of(out)}, {}, 1));
    if (guarded) {
      EXPECT_EQ(text, "");
      EXPECT_EQ(out, (std::vector<uint32_t>{0, 7, 12, 6}));
    } else {
      EXPECT_MENTIONS(text, "lane 1 divides 12 by 0");
    }
  }
}

TEST(Interp, LoopsVarsAndMasks) {
  // y[lane] = sum of i over [1, n) where i > lane
  B b("loop", 4, test_caps());
  Buffer y = buffer("y", i32, Access::write);
  Var acc = var(0);
  For(1, cast(i32, dim("n")), [&](V i) { If(i > cast(i32, lane()), [&] { acc.set(acc.get() + i); }); });
  y.store(lane(), acc.get());
  auto kernel = b.finish();
  ASSERT_OK(kernel);
  std::vector<int32_t> out(4);
  ASSERT_OK(run_kernel(*kernel, {bytes_of(out)}, {6}, 1));
  EXPECT_EQ(out, (std::vector<int32_t>{15, 14, 12, 9}));
  ASSERT_OK(run_kernel(*kernel, {bytes_of(out)}, {0}, 1));
  EXPECT_EQ(out, (std::vector<int32_t>{0, 0, 0, 0}));
}

TEST(Interp, GroupRangesMirrorTheEntry) {
  B b("range", 2, test_caps());
  Buffer y = buffer("y", u32, Access::write);
  y.store(group() * 2 + lane(), group() + 1);
  auto kernel = b.finish();
  ASSERT_OK(kernel);
  std::vector<uint32_t> out(8);
  ASSERT_OK(interpret(*kernel, std::vector<InterpBuffer>{bytes_of(out)}, {}, 1, 3));
  EXPECT_EQ(out, (std::vector<uint32_t>{0, 0, 2, 2, 3, 3, 0, 0}));
}

TEST(Interp, FusedMultiplyAddRoundsOnce) {
  const float a = 1 + 0x1p-12f,
              c = -(1 + 0x1p-11f);  // a * a = 1 + 2^-11 + 2^-24: the tail is lost when the product rounds
  for (bool fused : {true, false}) {
    Caps caps = test_caps();
    caps.fma = fused;
    B b("fma", 1, caps);
    Buffer x = buffer("x", f32), y = buffer("y", f32, Access::write);
    V v = x[0];
    y.store(0, fma(v, v, c));
    auto kernel = b.finish();
    ASSERT_OK(kernel);
    std::vector<float> in = {a}, out(1);
    ASSERT_OK(run_kernel(*kernel, {bytes_of(in), bytes_of(out)}, {}, 1));
    EXPECT_EQ(out[0], fused ? 0x1p-24f : 0.f);
  }
}

}  // namespace
}  // namespace tern::kir
