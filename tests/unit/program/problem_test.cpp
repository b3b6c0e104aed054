#include <gtest/gtest.h>

#include "program/candidate.h"
#include "sample.h"

namespace tern {
namespace {

Problem linear(DimTable& dims, std::string symbol, std::string before = {}) {
  if (!before.empty()) (void)dims.symbol({before, 1, 9, 1, false});
  const Dim t = *dims.symbol({symbol, 1, 512, 1, false});
  Problem p;
  p.family = Family::matmul;
  p.desc = MatmulDesc{};
  p.operands = {{{DType::f32, {t, 576}}, Role::x, Origin::temp, Access::read, {}},
                {{DType::f32, {64, 576}, format_by_name("q4_1")}, Role::weight, Origin::param, Access::read, {}},
                {{DType::f32, {t, 64}}, Role::out, Origin::temp, Access::write, {}}};
  p.extent = {1, t, 576};
  Part part;
  part.n = 64;
  part.weights = {1};
  part.outs.push_back({2, 0, Output::Kind::map, {}});
  p.parts.push_back(part);
  p.bounds = {{*dims.find_symbol(symbol), 1, 1}};
  return p;
}

TEST(Problem, EqualOverTablesWithOtherIds) {
  DimTable a, b;
  const Problem p = linear(a, "T"), q = linear(b, "T", "B");
  EXPECT_EQ(problem_hash(p, a, true), problem_hash(q, b, true));
  DimTable c;
  EXPECT_NE(problem_hash(p, a, true), problem_hash(linear(c, "U"), c, true));
}

TEST(Problem, EveryFieldCounts) {
  DimTable d;
  const Problem p = linear(d, "T");
  const Hash h = problem_hash(p, d, true);
  const auto differs = [&](auto change, bool with_layouts = true) {
    Problem q = p;
    change(q);
    return problem_hash(q, d, with_layouts) != problem_hash(p, d, with_layouts);
  };
  EXPECT_EQ(h, problem_hash(p, d, true));
  EXPECT_TRUE(differs([](Problem& q) { q.family = Family::norm; }));
  EXPECT_TRUE(differs([](Problem& q) { q.operands[0].type.dtype = DType::f16; }));
  EXPECT_TRUE(differs([](Problem& q) { q.operands[1].type.format = format_by_name("q4_0"); }));
  EXPECT_TRUE(differs([](Problem& q) { q.operands[1].origin = Origin::temp; }));
  EXPECT_TRUE(differs([](Problem& q) { q.operands[1].role = Role::extra; }));
  EXPECT_TRUE(differs([](Problem& q) { q.operands[2].access = Access::update; }));
  EXPECT_TRUE(differs([](Problem& q) { q.extent[0] = 2; }));
  EXPECT_TRUE(differs([](Problem& q) { q.parts[0].n = 65; }));
  EXPECT_TRUE(differs([](Problem& q) { q.parts[0].weights.push_back(1); }));
  EXPECT_TRUE(differs([](Problem& q) { q.parts[0].outs[0].map.offset = 1; }));
  EXPECT_TRUE(differs([](Problem& q) { q.parts[0].epilogue.code.push_back({}); }));
  EXPECT_TRUE(differs([](Problem& q) { q.prologue.consts.push_back({1, 0}); }));
  EXPECT_TRUE(differs([](Problem& q) { std::get<MatmulDesc>(q.desc).weight_is_kn = true; }));
  EXPECT_TRUE(differs([](Problem& q) { q.bounds[0].max = 8; }));
  EXPECT_TRUE(differs([](Problem& q) { q.policy.precise = true; }));
  const auto layout = [](Problem& q) { q.operands[1].layout = {&kPackedTiles, {16, 0, 0, 0}}; };
  EXPECT_TRUE(differs(layout));
  EXPECT_FALSE(differs(layout, false));
}

TEST(Problem, KeysAgreeWithHashes) {
  DimTable d;
  ProblemKeys keys(d);
  const Problem p = linear(d, "T"), u = linear(d, "U");
  EXPECT_EQ(keys.key(p, true), keys.key(linear(d, "T"), true));
  EXPECT_NE(keys.key(p, true), keys.key(u, true));
  Problem q = p;
  q.operands[1].layout = {&kPackedTiles, {16, 0, 0, 0}};
  EXPECT_EQ(keys.key(p, false), keys.key(q, false));
  EXPECT_NE(keys.key(p, true), keys.key(q, true));
}

TEST(Problem, Text) {
  DimTable d;
  Problem p = linear(d, "T");
  EXPECT_EQ(problem_text(p, d), "matmul {1,T,576} f32[T,576] q4_1[64,576] -> f32[T,64] T<=1");
  p.operands[1].layout = {&kPackedTiles, {16, 0, 0, 0}};
  EXPECT_EQ(problem_text(p, d), "matmul {1,T,576} f32[T,576] q4_1[64,576]@packed_tiles -> f32[T,64] T<=1");
}

// Records what a candidate would write.
struct Recorder : BuildCtx {
  using BuildCtx::BuildCtx;
  Use whole(uint16_t operand) override { return {{operand, 0, 0}, Access::read}; }
  Use window(uint16_t operand, Dim offset, Dim bytes) override { return {{operand, offset, bytes}, Access::read}; }
  Use scratch(Dim) override { return {}; }
  KernelId kernel(KernelDef) override { return 0; }
  void step(Step) override {}
};

TEST(Windows, CutAtUnitsAndAlignedOffsets) {
  DimTable dims;
  Caps caps;
  caps.max_binding_bytes = 1000;
  caps.offset_alignment = 256;
  Problem p;
  p.operands = {{{DType::f32, {100, 16}}, Role::weight, Origin::param, Access::read, {}}};  // rows of 64 bytes
  const Layout dense{&kDense, {}};
  const Asked asked{caps, dims};
  ASSERT_EQ(*window_count(p.operands[0], dense, {}, asked), 9);  // 12 rows: 768 bytes, the most at a multiple of 256
  Recorder ctx(asked);
  std::vector<std::array<int64_t, 4>> got;
  ASSERT_TRUE(for_windows(p, 0, dense, ctx, [&](int64_t first, int64_t units, Use use) {
                got.push_back({first, units, *use.ref.offset.constant(), *use.ref.bytes.constant()});
                return ok();
              }).ok());
  ASSERT_EQ(got.size(), 9u);
  EXPECT_EQ(got[1], (std::array<int64_t, 4>{12, 12, 768, 768}));
  EXPECT_EQ(got[8], (std::array<int64_t, 4>{96, 4, 6144, 256}));
}

TEST(Windows, WhatFitsIsOneWindowOfAllRows) {
  DimTable dims;
  const Dim t = *dims.symbol({"T", 1, 512, 1, false});
  Caps caps;
  Recorder ctx({caps, dims});
  const auto units_of = [&](Shape shape, Layout layout, Bounds bounds = {}) {
    Problem p;
    p.operands = {{{DType::f32, std::move(shape)}, Role::weight, Origin::temp, Access::read, {}}};
    p.bounds = std::move(bounds);
    int64_t all = -1;
    EXPECT_TRUE(for_windows(p, 0, layout, ctx, [&](int64_t first, int64_t units, Use) {
                  all = first == 0 ? units : -1;
                  return ok();
                }).ok());
    return all;
  };
  EXPECT_EQ(units_of({100, 16}, {&kDense, {}}), 100);
  EXPECT_EQ(units_of({t, 16}, {&kDense, {}}), 512);
  EXPECT_EQ(units_of({t, 16}, {&kDense, {}}, {{0, 1, 8}}), 8);
  EXPECT_EQ(units_of({t, t}, {&kDense, {}}), 512);  // rows of symbolic length
  EXPECT_EQ(units_of({100, 16}, {&kFloatTiles, {8, 0, 0, 0}}), 13);
}

TEST(Windows, RefusalsNameTheNumbers) {
  DimTable dims;
  const Dim t = *dims.symbol({"T", 1, 512, 1, false});
  Caps caps;
  caps.max_binding_bytes = 1024;
  const Asked asked{caps, dims};
  const Operand x{{DType::f32, {t, 16}}, Role::x, Origin::temp, Access::read, {}};
  const auto many = window_count(x, {&kDense, {}}, {}, asked);
  ASSERT_FALSE(many.ok());
  EXPECT_NE(many.why().find("32768 bytes"), std::string::npos) << many.why();
  EXPECT_EQ(*window_count(x, {&kDense, {}}, {{0, 1, 16}}, asked), 1);
  const Operand wide{{DType::f32, {4, 1000}}, Role::x, Origin::temp, Access::read, {}};
  EXPECT_FALSE(window_count(wide, {&kDense, {}}, {}, asked).ok());
}

}  // namespace
}  // namespace tern
