#include <gtest/gtest.h>

#include <random>

#include "sample.h"

namespace tern {
namespace {

// One of everything.
Program full() {
  Program p = test::empty_program();
  DimTable& d = *p.dims;
  const Dim t = *d.symbol({"T", 1, 512, 1, false}), l = *d.symbol({"L", 0, 512, 1, false});
  p.guards.push_back({t, d.add(l, 3), "axis 0", {"node 3"}});
  p.block = {t, d.ceildiv(d.mul(t, l), 7)};
  const BufferId x = test::buffer(p, "x", d.mul(t, 4), Origin::io), w = test::buffer(p, "w", 4096, Origin::param);
  const BufferId a = test::buffer(p, "a", d.mul(t, 4)), c = test::buffer(p, "const", 8, Origin::param);
  p.buffers[w].type = {DType::f32, {64, 64}, format_by_name("q4_1")};
  p.buffers[w].layout = {&kPackedTiles, {16, 4, 0, 0}};
  Problem problem;
  problem.family = Family::attention;
  problem.desc = AttentionDesc{.heads = 9, .kv_heads = 3, .head_size = 64, .scale = 0.125, .soft_cap = 30, .window = 7};
  problem.operands = {{p.buffers[w].type, Role::k, Origin::param, Access::update, p.buffers[w].layout}};
  problem.extent = {t, 64};
  problem.prologue.code = {{ScalarExpr::Kind::load, ScalarOp::add, DType::f16, 0, 0, 0},
                           {ScalarExpr::Kind::op, ScalarOp::cast, DType::f32, 0, 0, 0}};
  problem.prologue.loads = {{0, {d.sub(t, 1), {-1, 0}}}};
  problem.prologue.consts = {{0.1, -5}};
  problem.prologue.dims = {l};
  Part part;
  part.n = 64;
  part.weights = {0};
  part.outs = {{0, 1, Output::Kind::row_max, {1, {2, t}}}};
  problem.parts = {part};
  problem.bounds = {{0, 1, 8}};
  problem.policy.precise = true;
  p.problems.push_back(problem);
  KernelDef k;
  k.name = "attend";
  k.hash = {1, 2};
  k.kind = KernelDef::Kind::binary;
  k.code = {std::byte{1}, std::byte{255}};
  k.sig = {{Access::read, Access::write}, 1};
  k.problem = 0;
  k.part = 2;
  p.kernels.push_back(k);
  p.choices.push_back({0, "attend", "t2", {3, 4}, 1e9, 2e9, 0.25, {{"other", "k = 96, wants a multiple of 128"}}});
  Step launch;
  launch.what = Launch{0, d.ceildiv(t, 8), {t}};
  launch.uses = {test::use(p, x, Access::read), test::use(p, a, Access::write)};
  launch.problem = 0;
  launch.phase = 3;
  launch.label = "blk.3.attn";
  Step fill;
  fill.what = Fill{7};
  fill.uses = {test::use(p, a, Access::write)};
  Step bind;
  bind.what = Bind{1};
  bind.uses = {test::use(p, a, Access::read)};
  Step loop;
  loop.what = Loop{1, 12};
  Step branch;
  branch.what = Branch{1, kNone};
  branch.uses = {test::use(p, a, Access::read)};
  Step rest;
  rest.what = Delegate{4};
  Step call;
  call.what = Call{2, {l}};
  Step all;
  all.what = Collective{1};
  p.lists[0] = {launch, test::copy(p, x, a), fill, bind, loop, branch, rest, call, all};
  p.lists.emplace_back();
  p.ranges = {{{{0, 1, 1}, {1, 0, 1}}, 0}, {{}, 1}};
  p.prepare_list = 1;
  p.io.io = {{"x", IoDef::Kind::input, p.buffers[x].type, {x}, false},
             {"w", IoDef::Kind::param, p.buffers[w].type, {w, c}, true}};
  p.constants.push_back({c, {DType::i32, {2}, std::make_shared<std::vector<std::byte>>(8, std::byte{9})}});
  return p;
}

TEST(Serial, EverythingComesBack) {
  const Program p = full();
  const std::vector<std::byte> bytes = serialize(p);
  const auto back = deserialize_program(bytes);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(serialize(*back), bytes);
  EXPECT_EQ(program_text(*back), program_text(p));
  // Field by field where equality of bytes could hide something left out on both sides.
  EXPECT_EQ(problem_hash(back->problems[0], *back->dims, true), problem_hash(p.problems[0], *p.dims, true));
  EXPECT_EQ(back->dims->text(back->block[1]), p.dims->text(p.block[1]));
  EXPECT_EQ(back->guards[0].loc.text, "node 3");
  EXPECT_EQ(back->buffers[1].layout, p.buffers[1].layout);
  EXPECT_EQ(back->kernels[0].code, p.kernels[0].code);
  EXPECT_EQ(back->kernels[0].part, 2);
  EXPECT_EQ(back->choices[0].refusals, p.choices[0].refusals);
  EXPECT_EQ(std::get<Loop>(back->lists[0][4].what).max_trips, 12);
  EXPECT_EQ(std::get<Fill>(back->lists[0][2].what).word, 7u);
  EXPECT_EQ(std::get<Call>(back->lists[0][7].what).lib, 2u);
  EXPECT_EQ(back->ranges[0].when, p.ranges[0].when);
  EXPECT_EQ(back->prepare_list, 1u);
  EXPECT_EQ(back->io.io[1].buffers, (std::vector<BufferId>{1, 3}));
  EXPECT_TRUE(back->io.io[1].optional_read);
  EXPECT_EQ(back->constants[0].value, p.constants[0].value);
}

TEST(Serial, EveryCutIsAnError) {
  const std::vector<std::byte> bytes = serialize(full());
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(deserialize_program(std::span(bytes).first(n)).ok()) << n;
  std::vector<std::byte> more = bytes;
  more.push_back(std::byte{0});
  EXPECT_FALSE(deserialize_program(more).ok());
}

TEST(Serial, ChangedBytesNeverFault) {
  const std::vector<std::byte> bytes = serialize(full());
  std::mt19937 rng(5);
  for (int i = 0; i < 4000; ++i) {
    std::vector<std::byte> b = bytes;
    for (int n = 0; n < 1 + i % 3; ++n) b[rng() % b.size()] = static_cast<std::byte>(rng());
    const auto p = deserialize_program(b);
    if (p.ok()) (void)program_text(*p);
  }
}

TEST(Serial, NamesWhatIsMissing) {
  Program p = full();
  static constexpr LayoutDef kOther{"other_layout", nullptr, nullptr, -1, nullptr, nullptr};
  p.buffers[1].layout.def = &kOther;
  const auto back = deserialize_program(serialize(p));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, Code::unsupported);
  EXPECT_NE(back.error().text.find("other_layout"), std::string::npos);
}

}  // namespace
}  // namespace tern
