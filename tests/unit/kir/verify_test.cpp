// What the verifier refuses, with the reason; uniformity in both strengths; the serial form; the builder's own errors.
#include "kir/verify.h"

#include <cmath>

#include "kir/print.h"
#include "kir/serial.h"
#include "kir/uniformity.h"
#include "kir_test.h"

namespace tern::kir {
namespace {

template <class F>
std::string built(const Caps& caps, uint32_t lanes, F&& body) {
  B b("probe", lanes, caps);
  body();
  return error_text(b.finish());
}

TEST(Verify, BarriersUnderVaryingControlAreRefused) {
  const auto body = [] { If(lane() < 2, [] { barrier(); }); };
  EXPECT_MENTIONS(built(test_caps(), 4, body),
                  "stands under control that differs between lanes (kernel probe, node 4 (barrier))");
  EXPECT_MENTIONS(built(lockstep_caps(), 4, body), "differs between lanes");
  EXPECT_EQ(built(test_caps(), 4, [] { If(group() < 2, [] { barrier(); }); }), "");
  // Through a variable that only some lanes set, and round a loop.
  EXPECT_MENTIONS(built(test_caps(), 4,
                        [] {
                          Var v = var(0);
                          For(0, dim("n"), [&](V) {
                            If(v.get() == 0, [] { barrier(); });
                            If(lane() == 1, [&] { v.set(1); });
                          });
                        }),
                  "differs between lanes");
}

TEST(Verify, LoopBoundsAreUniform) {
  const auto lanes_bound = [] {
    Buffer y = buffer("y", u32, Access::write);
    For(0, lane(), [&](V i) { y.store(lane() * 8 + i, i); });
  };
  EXPECT_MENTIONS(built(lockstep_caps(), 8, lanes_bound),
                  "has a bound that differs between lanes (kernel probe, node 2 (loop))");
  // A bound read at a uniform place: proved on a lockstep device, and elsewhere only where nobody writes.
  for (Access access : {Access::read, Access::update}) {
    const auto loaded_bound = [&] {
      Buffer n = buffer("n", u32, access), y = buffer("y", u32, Access::write);
      For(0, n[group()], [&](V i) { y.store(lane() * 8 + i, i); });
    };
    EXPECT_EQ(built(lockstep_caps(), 8, loaded_bound), "");
    EXPECT_EQ(built(test_caps(), 8, loaded_bound).empty(), access == Access::read);
  }
  EXPECT_MENTIONS(built(lockstep_caps(), 8,
                        [] {
                          Buffer n = buffer("n", u32), y = buffer("y", u32, Access::write);
                          For(0, n[lane()], [&](V i) { y.store(lane() * 8 + i, i); });
                        }),
                  "differs between lanes");
}

TEST(Verify, Uniformity) {
  B b("uniform", 8, lockstep_caps());
  Buffer x = buffer("x", f32, Access::update), y = buffer("y", f32, Access::write);
  V same = x[group()], total = wg_add(x[lane()]);
  y.store(lane(), same + total);
  auto k = b.finish();
  ASSERT_OK(k);
  const Uniformity strict = uniformity(*k, Strength::strict), lockstep = uniformity(*k, Strength::lockstep);
  int loads = 0;
  for (Ref r = 0; r < k->nodes.size(); ++r) {
    const Node& n = k->nodes[r];
    if (n.op == Op::load) {
      ++loads;
      EXPECT_TRUE(strict.varying[r]);
      EXPECT_EQ(lockstep.varying[r] != 0, k->nodes[n.a].op == Op::lane);
    }
    if (n.op == Op::subgroup_add) {
      EXPECT_TRUE(strict.varying[r] && !lockstep.varying[r]);
    }
    if (n.op == Op::group || n.op == Op::constant) {
      EXPECT_TRUE(!strict.varying[r] && !lockstep.varying[r]);
    }
    if (n.op == Op::lane) {
      EXPECT_TRUE(strict.varying[r] && lockstep.varying[r]);
    }
  }
  EXPECT_EQ(loads, 2);
}

TEST(Verify, NodeBudget) {
  const auto body = [](uint32_t budget) {
    return [budget] {
      if (budget) B::current().node_budget(budget);
      Buffer x = buffer("x", f32), y = buffer("y", f32, Access::write);
      V v = x[lane()];
      for (int i = 0; i < 450; ++i) v = fma(v, v, static_cast<float>(i));
      y.store(lane(), v);
    };
  };
  EXPECT_MENTIONS(built(test_caps(), 4, body(0)), "452 statements, the budget is 400");
  EXPECT_EQ(built(test_caps(), 4, body(500)), "");
}

TEST(Verify, WhatTheCapsLack) {
  const auto store_of = [](Type t) {
    return [t] {
      Buffer x = buffer("x", t), y = buffer("y", t, Access::write);
      y.store(lane(), x[lane()] + 1);
    };
  };
  Caps caps = test_caps();
  caps.f64 = caps.i64 = false;
  EXPECT_MENTIONS(built(caps, 4, store_of(f64)), "no f64");
  EXPECT_MENTIONS(built(caps, 4, store_of(i64)), "no 64-bit integers");
  EXPECT_EQ(built(caps, 4, store_of(f32)), "");
  EXPECT_MENTIONS(built(caps, 512, store_of(f32)), "512 lanes; the device takes 1 to 256");
  caps.workgroup_bytes = 64;
  EXPECT_MENTIONS(built(caps, 32, [] { wg_broadcast(lane(), 3), shared("s", f32, 17).store(0, 1.f); }),
                  "bytes of workgroup memory; the device has 64");
  caps.max_bindings = 1;
  EXPECT_MENTIONS(built(caps, 4, store_of(f32)), "2 bindings; the device takes 1");
  EXPECT_MENTIONS(built(test_caps(), 4,
                        [] {
                          Buffer y = buffer("y", f32, Access::write);
                          y.store(lane(), subgroup_add(1.f));
                        }),
                  "no subgroups; use wg_add");
  // A kernel built for a richer device is refused on a poorer one.
  B b("rich", 4, lockstep_caps());
  Buffer x = buffer("x", u32), y = buffer("y", i32, Access::write);
  y.store(lane(), dot4(0, x[lane()], x[lane()]));
  auto k = b.finish();
  ASSERT_OK(k);
  EXPECT_MENTIONS(error_text(verify(*k, test_caps())), "no dot4");
}

TEST(Verify, ScopesAndAccess) {
  EXPECT_MENTIONS(built(test_caps(), 4,
                        [] {
                          Buffer x = buffer("x", f32), y = buffer("y", f32, Access::write);
                          V leaked;
                          If(group() == 0, [&] { leaked = x[lane()]; });
                          y.store(lane(), leaked);
                        }),
                  "is not visible here");
  EXPECT_MENTIONS(built(test_caps(), 4,
                        [] {
                          Buffer y = buffer("y", u32, Access::write);
                          V index;
                          For(0, 4, [&](V i) { index = i; });
                          y.store(index, 1);
                        }),
                  "not visible");
  EXPECT_MENTIONS(built(test_caps(), 4,
                        [] {
                          Buffer y = buffer("y", f32, Access::write);
                          y.store(lane(), y[lane()]);
                        }),
                  "loads from y, which is bound for writing");
  EXPECT_MENTIONS(built(test_caps(), 4, [] { buffer("x", f32).store(lane(), 1.f); }),
                  "store to x, which is bound for reading");
}

TEST(Builder, TheFirstErrorSticksAndNamesTheCure) {
  const std::string text = built(test_caps(), 4, [] {
    Buffer x = buffer("x", f32), y = buffer("y", f32, Access::write);
    V wrong = x[lane()] + lane();
    y.store(lane(), sqrt(wrong) * V());
    If(wrong, [&] { y.store(lane(), 1.f); });
  });
  EXPECT_MENTIONS(text, "f32 + u32: the types differ; cast one");
  EXPECT_MENTIONS(text, "kernel probe");
  EXPECT_MENTIONS(built(test_caps(), 4, [] { V(0.5f) + lane(); }), "the host number 0.500000 is no u32");
  EXPECT_MENTIONS(built(test_caps(), 4, [] { sqrt(lane()); }), "sqrt of u32; it takes f32 or f64");
  EXPECT_MENTIONS(built(test_caps(), 4, [] { lane() + V(); }), "a value that was never set");
  EXPECT_MENTIONS(built(test_caps(), 4,
                        [] {
                          Var v;
                          v.set(1);
                        }),
                  "never made");
  EXPECT_MENTIONS(built(test_caps(), 4, [] { buffer("x", u8, read, {.width = 2}); }),
                  "u8 elements are not read 2 at once");
  EXPECT_MENTIONS(built(test_caps(), 4, [] { buffer("x", f32), buffer("x", f32); }), "two buffers are called x");
}

TEST(Builder, NestedBuildersWriteTheirOwnKernels) {
  B outer("outer", 4, test_caps());
  Buffer y = buffer("y", u32, Access::write);
  {
    B inner("inner", 4, test_caps());
    buffer("z", u32, Access::write).store(lane(), 2);
    auto k = inner.finish();
    ASSERT_OK(k);
    EXPECT_EQ(k->bindings[0].name, "z");
  }
  y.store(lane(), 1);
  auto k = outer.finish();
  ASSERT_OK(k);
  EXPECT_EQ(k->bindings.size(), 1u);
}

TEST(Builder, FoldsOnlyWhatKeepsEveryBit) {
  B b("fold", 16, test_caps());
  Buffer x = buffer("x", f32), y = buffer("y", f32, Access::write);
  V v = x[lane()], i = lane(), n = dim("n");
  const auto same = [](const V& p, const V& q) { return p.ref() == q.ref(); };
  EXPECT_TRUE(same(v * 1.f, v));
  EXPECT_TRUE(same(v - 0.f, v));
  EXPECT_TRUE(same(v + -0.f, v));
  EXPECT_FALSE(same(v + 0.f, v));                                 // -0 would become +0
  EXPECT_FALSE(same(v * 0.f, V(B::current().constant(f32, 0))));  // NaN would vanish
  EXPECT_TRUE(same(v / 4.f, v * 0.25f));
  EXPECT_FALSE(same(v / 3.f, v * (1 / 3.f)));
  EXPECT_TRUE(same(n + 0, n));
  EXPECT_TRUE(same((n + 3) + 4, n + 7));
  EXPECT_TRUE(same(n * 2 * 8, n * 16));
  EXPECT_TRUE(same(n / 8, n >> 3));
  EXPECT_TRUE(same(n % 8, n & 7));
  EXPECT_TRUE(same(n * 1, n));
  EXPECT_TRUE(same(n - n, B::current().constant(u32, 0)));
  EXPECT_TRUE(same(i % 16, i));  // lane < 16
  EXPECT_TRUE(same(i / 16, B::current().constant(u32, 0)));
  EXPECT_TRUE(same(i < 16, B::current().constant(b1, 1)));
  EXPECT_FALSE(same(i < 15, B::current().constant(b1, 1)));
  EXPECT_TRUE(same(constant(i32, -7) / 2, B::current().constant(i32, static_cast<uint32_t>(-3))));
  EXPECT_TRUE(same(cast(i32, constant(f32, 1e20)), B::current().constant(i32, 0x7fffffff)));
  EXPECT_TRUE(same(x[i], v));  // nobody writes x
  EXPECT_TRUE(same(i * n + 1, i * n + 1));
  y.store(lane(), v);
  EXPECT_OK(b.finish());
}

TEST(Builder, DeadValuesLeaveNoTrace) {
  const auto build = [](bool litter) {
    B b("sweep", 4, test_caps());
    Buffer x = buffer("x", f16), y = buffer("y", f32, Access::write);
    if (litter) {
      V unused = sqrt(x.as(f32)[lane()]);
      Var v = var(unused);
      If(lane() == 1, [&] { v.set(2.f); });
    }
    y.store(lane(), x[lane()]);
    return b.finish();
  };
  auto clean = build(false), littered = build(true);
  ASSERT_OK(clean);
  ASSERT_OK(littered);
  EXPECT_EQ(serialize(*clean), serialize(*littered));
}

// C++ evaluates the operands of a + b in an order of its own; here both orders are written down.
TEST(Builder, TheOrderOfOperandsLeavesNoTrace) {
  const auto build = [](bool turned) {
    B b("order", 4, test_caps());
    const Buffer x = buffer("x", f32), w = buffer("w", f16), y = buffer("y", f32, Access::write);
    const V n = dim("n");
    const Var acc = var(0.f);
    For(0, n, [&](V i) {
      V value, weight, sum;
      const auto loads = [&](bool first) {
        if (first)
          value = x[i * 4 + lane()];
        else
          weight = w[i + lane() * n];
      };
      loads(!turned), loads(turned);
      if (turned) sum = acc.get();
      const V product = value * weight;
      if (!turned) sum = acc.get();
      acc.set(product + sum);
    });
    V total, count;
    if (turned) count = cast(f32, n);
    total = wg_add(acc.get());
    if (!turned) count = cast(f32, n);
    If(lane() == 0, [&] { y.store(group(), total / count); });
    return b.finish();
  };
  const auto straight = build(false), turned = build(true);
  ASSERT_OK(straight);
  ASSERT_OK(turned);
  EXPECT_EQ(serialize(*straight), serialize(*turned));
}

// What reads stays between the same two changes.
TEST(Builder, ReadsDoNotPassChanges) {
  B b("reads", 1, lockstep_caps());
  const Buffer y = buffer("y", f32, Access::update);
  const Var v = var(1.f);
  const V before = v.get(), old = y[0];
  v.set(2.f);
  y.store(0, 5.f);
  const V after = v.get(), now = y[0];
  y.store(1, after * 10.f + before);
  y.store(2, now * 10.f + old);
  auto k = b.finish();
  ASSERT_OK(k);
  std::vector<float> data = {3, 0, 0};
  EXPECT_OK(run_kernel(*k, {bytes_of(data)}, {}, 1));
  EXPECT_EQ(data, (std::vector<float>{5, 21, 53}));
}

// ---- serial form

Result<Kernel> everything() {
  B b("everything", 16, lockstep_caps());
  b.node_budget(1000);
  Buffer x = buffer("x", u32, read, {.width = 4}), h = buffer("h", f16),
         y = buffer("y", f32, Access::update, {.width = 2, .streaming = true});
  Shared s = shared("s", f32, 16);
  Var acc = var(0.f);
  For(0, dim("n"), [&](V i) {
    const Parts p = x.load(i * 16 + lane());
    acc.set(fma(half_to_f32(p[0] ^ p[3]), h[i], acc.get()));
    If(p[1] < p[2], [&] { acc.set(exp(acc.get()) + cast(f32, dot4(1, p[1], p[2]))); });
  });
  s.store(lane(), wg_max(acc.get()));
  barrier();
  y.store(group() * 16 + lane(), {s[(lane() + 1) % 16], select(lane() == 3, sin(acc.get()), dim_f32("eps"))});
  return b.finish();
}

TEST(Serial, BytesAreExactAndBadBytesAreRefused) {
  auto k = everything();
  ASSERT_OK(k);
  const auto bytes = serialize(*k);
  auto back = deserialize(bytes);
  ASSERT_OK(back);
  EXPECT_TRUE(*back == *k);
  EXPECT_EQ(kernel_hash(*back), kernel_hash(*k));
  EXPECT_EQ(print(*back), print(*k));
  for (size_t n = 0; n < bytes.size(); ++n) {
    const auto cut = deserialize(std::span(bytes).first(n));
    ASSERT_FALSE(cut.ok()) << n;
    EXPECT_EQ(cut.error().code, Code::malformed);
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_MENTIONS(error_text(deserialize(longer)), "bytes behind the kernel");
  auto newer = bytes;
  newer[4] = std::byte{99};
  EXPECT_MENTIONS(error_text(deserialize(newer)), "kernel form 99; this build reads 3");
}

TEST(Serial, FlippedBytesNeverPassTheVerifierUnsafely) {
  auto k = everything();
  ASSERT_OK(k);
  const auto bytes = serialize(*k);
  int refused = 0, passed = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int flip : {1, 0x10, 0x80, 0xff}) {
      auto bad = bytes;
      bad[at] ^= std::byte(flip);
      auto loaded = deserialize(bad);
      if (!loaded || !verify(*loaded, lockstep_caps())) {
        ++refused;
        continue;
      }
      ++passed;  // a name, a constant or another legal op: then it must run or say why not
      std::vector<uint32_t> x(256), h(64);
      std::vector<float> y(256);
      std::vector<InterpBuffer> buffers(loaded->bindings.size(), bytes_of(x));
      if (buffers.size() == 3) buffers = {bytes_of(x), bytes_of(h), bytes_of(y)};
      const std::vector<uint32_t> dims(loaded->dims.size(), 1);
      if (loaded->lanes <= 256) (void)interpret(*loaded, buffers, dims, 0, 1).ok();
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(passed, 50);
}

TEST(Serial, FirstBytesAreFixed) {
  B b("k", 1, test_caps());
  buffer("y", u32, Access::write).store(0, 7);
  auto k = b.finish();
  ASSERT_OK(k);
  const std::vector<int> want = {
      'k', 'i', 'r', '\n', 3, 1, 'k', 1, 0, 0x90, 3,  // version, name, lanes, subgroup, budget 400
      1,   1,   'y', 3,    1, 1, 0,                   // binding y: u32, 1 wide, write
      1,   0,   3,   1,    0, 0,                      // one view; no dims, no arrays
      3,   0,   3,   1,    0, 0, 0,   3, 1, 7,    0, 40, 0, 1, 1, 2, 0, 0, 1, 1, 2};
  std::vector<int> got;
  for (std::byte v : serialize(*k)) got.push_back(static_cast<int>(v));
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace tern::kir
