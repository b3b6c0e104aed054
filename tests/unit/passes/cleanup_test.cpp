#include "graph/op.h"
#include "rewrites.h"

namespace tern {
namespace {

TEST(Fold, ConstantsAreEvaluated) {
  EXPECT_EQ(after(fold, R"(  %x = input "x" : f32[2]
  %0 = constant() {value = f32[2] {1, 2}} : f32[2]
  %1 = constant() {value = f32[2] {0.1, 0.2}} : f32[2]
  %2 = add(%0, %1) : f32[2] loc "here"
  %3 = add(%x, %2) : f32[2]
  %4 = constant() {value = i8[2] {100, 100}} : i8[2]
  %5 = add(%4, %4) : i8[2]
  %6 = constant() {value = f16[1] {2048}} : f16[1]
  %7 = constant() {value = f16[1] {1}} : f16[1]
  %8 = add(%6, %7) : f16[1]
  output "a" %3
  output "b" %5
  output "c" %8
)"),
            R"(  %x = input "x" : f32[2]
  %0 = constant() {value = f32[2] {1.1, 2.2}} : f32[2] loc "here"
  %1 = add(%x, %0) : f32[2]
  %2 = constant() {value = i8[2] {-56, -56}} : i8[2]
  %3 = constant() {value = f16[1] {2048}} : f16[1]
  output "a" %1
  output "b" %2
  output "c" %3
)");
}

TEST(Fold, WhatWouldGrowStays) {
  const std::string big = R"(  %0 = constant() {value = f32[] {1}} : f32[]
  %1 = broadcast(%0) {shape = [1000], axes = []} : f32[1000]
  output "o" %1
)";
  EXPECT_EQ(after(fold, big), big);
  const std::string symbolic =
      "  symbol T in [1, 9]\n  %0 = constant() {value = f32[] {1}} : f32[]\n"
      "  %1 = broadcast(%0) {shape = [T], axes = []} : f32[T]\n  output \"o\" %1\n";
  EXPECT_EQ(after(fold, symbolic), symbolic);
}

TEST(Cse, EqualNodesBecomeOne) {
  EXPECT_EQ(after(cse, R"(  %x = input "x" : f32[2]
  %y = input "y" : f32[2]
  %0 = add(%x, %y) : f32[2] loc "first"
  %1 = add(%y, %x) : f32[2] loc "second"
  %2 = exp(%0) : f32[2]
  %3 = exp(%1) : f32[2]
  %4 = sub(%x, %y) : f32[2]
  %5 = sub(%y, %x) : f32[2]
  %6 = max(%x, %y) : f32[2]
  %7 = max(%y, %x) : f32[2]
  %8 = cast(%x) {to = f16} : f16[2]
  %9 = cast(%x) {to = bf16} : bf16[2]
  output "a" %2
  output "b" %3
  output "c" %4
  output "d" %5
  output "e" %6
  output "f" %7
  output "g" %8
  output "h" %9
)"),
            R"(  %x = input "x" : f32[2]
  %y = input "y" : f32[2]
  %0 = add(%x, %y) : f32[2] loc "first"
  %1 = exp(%0) : f32[2]
  %2 = sub(%x, %y) : f32[2]
  %3 = sub(%y, %x) : f32[2]
  %4 = max(%x, %y) : f32[2]
  %5 = max(%y, %x) : f32[2]
  %6 = cast(%x) {to = f16} : f16[2]
  %7 = cast(%x) {to = bf16} : bf16[2]
  output "a" %1
  output "b" %1
  output "c" %2
  output "d" %3
  output "e" %4
  output "f" %5
  output "g" %6
  output "h" %7
)");
}

TEST(Cse, ConstantsByContents) {
  EXPECT_EQ(after(cse, R"(  %0 = constant() {value = f32[2] {1, 0}} : f32[2]
  %1 = constant() {value = f32[2] {1, 0}} : f32[2]
  %2 = constant() {value = f32[2] {1, -0}} : f32[2]
  %3 = constant() {value = f32[2, 1] {1, 0}} : f32[2, 1]
  output "a" %0
  output "b" %1
  output "c" %2
  output "d" %3
)"),
            R"(  %0 = constant() {value = f32[2] {1, 0}} : f32[2]
  %1 = constant() {value = f32[2] {1, -0}} : f32[2]
  %2 = constant() {value = f32[2, 1] {1, 0}} : f32[2, 1]
  output "a" %0
  output "b" %0
  output "c" %1
  output "d" %2
)");
}

TEST(Dce, KeepsLeavesAndDropsProvedGuards) {
  auto g = parse_graph(R"(graph {
  symbol S in [1, 9]
  symbol T in [1, 9]
  %x = input "x" : f32[T]
  %y = input "y" : f32[S]
  %0 = add(%x, %y) : f32[T]
  %1 = exp(%x) : f32[T]
  guard T == S "add: axis 0"
  output "o" %0
})");
  ASSERT_TRUE(g.ok()) << g.error().message();
  g->guards.push_back({g->dims->mul(*g->dims->parse("T"), 2), *g->dims->parse("T + T"), "proved", {}});
  EXPECT_TRUE(dce(*g, {}).ok());
  EXPECT_EQ(g->node_count(), 3u);
  EXPECT_EQ(g->guards.size(), 1u);
  EXPECT_TRUE(g->verify().ok());
}

// A composite of the test's own: twice(x) = x + x, and quad(x) = twice(twice(x)).
Result<std::vector<TensorType>> infer(InferCtx& ctx) { return std::vector<TensorType>{ctx.in[0]}; }
Result<std::vector<Value>> decompose_twice(Builder& b, const Node&, std::span<const Value> in) {
  return std::vector<Value>{b.op("add", {in[0], in[0]})};
}
const OpDef kTwice{
    .name = "twice", .kind = OpKind::composite, .min_in = 1, .max_in = 1, .infer = infer, .decompose = decompose_twice};
Result<std::vector<Value>> decompose_quad(Builder& b, const Node& n, std::span<const Value> in) {
  TERN_TRY(const auto once, b.graph().add(kTwice, {in[0]}, {}, n.loc));
  return b.graph().add(kTwice, {once[0]}, {}, n.loc);
}
const OpDef kQuad{
    .name = "quad", .kind = OpKind::composite, .min_in = 1, .max_in = 1, .infer = infer, .decompose = decompose_quad};
const OpDef kAtom{.name = "atom", .kind = OpKind::composite, .min_in = 1, .max_in = 1, .infer = infer};
const OpDef kWrong{.name = "wrong",
                   .kind = OpKind::composite,
                   .min_in = 1,
                   .max_in = 1,
                   .infer = infer,
                   .decompose = [](Builder& b, const Node&, std::span<const Value> in) -> Result<std::vector<Value>> {
                     return std::vector<Value>{b.op("cast", {in[0]}, {DType::f16})};
                   }};

Graph composite(const OpDef& op) {
  Graph g;
  const Value x = *g.input("x", {DType::f32, {3}});
  EXPECT_TRUE(g.output("o", (*g.add(op, {x}, {}, {"blk.0"}))[0]).ok());
  return g;
}

OrRefuse<Bid> takes_twice(const void*, const Graph& g, Value v) {
  if (g.at(v).op->name == "twice") return Bid{};
  return refuse("no kernel for " + std::string(g.at(v).op->name));
}

TEST(Decompose, WhatNoCandidateTakes) {
  Graph g = composite(kQuad);
  const Target target{nullptr, nullptr, takes_twice};
  ASSERT_TRUE(decompose(g, target).ok());
  EXPECT_EQ(print(g), R"(graph {
  %x = input "x" : f32[3]
  %0 = twice(%x) : f32[3] loc "blk.0"
  %1 = twice(%0) : f32[3] loc "blk.0"
  output "o" %1
}
)");
  ASSERT_TRUE(decompose(g, {}).ok());
  EXPECT_EQ(print(g), R"(graph {
  %x = input "x" : f32[3]
  %0 = add(%x, %x) : f32[3] loc "blk.0"
  %1 = add(%0, %0) : f32[3] loc "blk.0"
  output "o" %1
}
)");
}

TEST(Decompose, ErrorsNameTheNode) {
  Graph g = composite(kAtom);
  const Target target{nullptr, nullptr, takes_twice};
  EXPECT_EQ(decompose(g, target).error().message(),
            "atom: no candidate takes it (no kernel for atom) and it has no decomposition (node 1 (atom) at blk.0)");
  Graph w = composite(kWrong);
  EXPECT_EQ(decompose(w, target).error().message(),
            "wrong: its decomposition gives f16[3] instead of f32[3] (node 1 (wrong) at blk.0)");
}

}  // namespace
}  // namespace tern
