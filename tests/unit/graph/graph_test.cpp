#include <gtest/gtest.h>

#include "test_ops.h"

namespace tern {
namespace {

struct GraphTest : testing::Test {
  Builder b;
  Dim T = b.symbol("T", 1, 512);
  Value x = b.input("x", DType::f32, {T, 8});
  std::string error() { return b.failed() ? b.error()->message() : "none"; }
};

TEST_F(GraphTest, BuildsAndInfers) {
  const Value w = b.param("w", DType::f32, {16, 8});
  const Value y = b.op("dot_general", {x, w});
  b.output("y", y);
  EXPECT_EQ(b.type(y), (TensorType{DType::f32, {T, 16}}));
  EXPECT_EQ(b.dim(y, -1), Dim(16));
  auto g = b.finish();
  ASSERT_TRUE(g.ok()) << error();
  EXPECT_EQ(g->at(y).attrs.size(), 2u);  // completed
  EXPECT_EQ(std::get<DType>(g->at(y).attrs[1]), DType::f32);
  EXPECT_EQ(g->port("w")->kind, PortKind::param);
  EXPECT_EQ(g->port_of(x)->name, "x");
  EXPECT_EQ(g->port_of(y), nullptr);
}

TEST_F(GraphTest, FirstErrorSticks) {
  b.scope("blk.3");
  const Value bad = b.op("dot_general", {x, b.param("w", DType::f32, {16, 9})}, {}, {"attn_q"});
  EXPECT_FALSE(bad.valid());
  EXPECT_EQ(error(), "dot_general: contracted axis: 8 is not 9 (node 2 (dot_general) at blk.3/attn_q)");
  b.output("y", b.op("neg", {bad}));
  b.op("no such op", {});
  EXPECT_EQ(b.type(bad).shape.size(), 0u);
  EXPECT_EQ(b.dim(bad, 3), Dim(0));
  EXPECT_EQ(b.error()->where, "node 2 (dot_general) at blk.3/attn_q");
  EXPECT_FALSE(b.finish().ok());
}

TEST_F(GraphTest, WrongUseIsNamed) {
  auto message = [](auto&& f) {
    Builder c;
    const Value v = c.input("x", DType::f32, {4});
    f(c, v);
    return c.failed() ? c.error()->message() : "none";
  };
  EXPECT_EQ(message([](Builder& c, Value v) { c.op("add", {v}); }), "add: takes 2 operands, got 1 (node 1 (add))");
  EXPECT_EQ(message([](Builder& c, Value) { c.op("sum", {}); }), "sum: takes 1 or more operands, got 0 (node 1 (sum))");
  EXPECT_EQ(message([](Builder& c, Value v) { c.op("neg", {v}, {int64_t{1}}); }),
            "neg: takes 0 attributes, got 1 (node 1 (neg))");
  EXPECT_EQ(message([](Builder& c, Value v) { c.op("split", {v}); }),
            "split: attribute parts is missing (node 1 (split))");
  EXPECT_EQ(message([](Builder& c, Value v) { c.op("split", {v}, {2.0}); }),
            "split: attribute parts is of kind real, wants integer (node 1 (split))");
  EXPECT_EQ(message([](Builder& c, Value v) { c.op("split", {v}, {int64_t{2}}); }),
            "split has 2 results, ask through ops()");
  EXPECT_EQ(message([](Builder& c, Value v) { c.ops("split", {v}, {int64_t{3}}); }),
            "split: last axis: 4 is no multiple of 3 (node 1 (split))");
  EXPECT_EQ(message([](Builder& c, Value) { c.op("neg", {Value{}}); }),
            "neg: operand 0 is no value of the graph (node 1 (neg))");
  EXPECT_EQ(message([](Builder& c, Value) { c.op("input", {}); }),
            "input: is made by Graph::input, not by add (node 1 (input))");
  EXPECT_EQ(message([](Builder& c, Value) { c.op("what", {}); }), "no op is named 'what'");
  EXPECT_EQ(message([](Builder& c, Value) { c.input("x", DType::f32, {}); }), "input 'x': the name is taken");
  EXPECT_EQ(message([](Builder& c, Value v) { c.output("y", v), c.output("y", v); }), "output 'y': the name is taken");
  EXPECT_EQ(message([](Builder& c, Value v) { c.update("x", v); }), "update of 'x': no state has this name");
  EXPECT_EQ(message([](Builder& c, Value) { c.input("n", DType::f32, {-1}); }),
            "input 'n': f32[-1]: axis 0 is negative");
  EXPECT_EQ(message([](Builder& c, Value) { c.constant(DType::i8, 128); }), "constant 128 is no i8");
  EXPECT_EQ(message([](Builder& c, Value) { c.constant(DType::i64, 9223372036854775808.0); }),
            "constant 9223372036854775808 is no i64");
  EXPECT_EQ(message([](Builder& c, Value) {
              c.constant(Const{DType::f32, {3}, std::make_shared<std::vector<std::byte>>(8)});
            }),
            "constant: attribute value holds 8 bytes, its type wants 12 (node 1 (constant))");
  EXPECT_EQ(message([](Builder& c, Value v) {
              c.state("s", DType::f16, {4});
              c.update("s", v);
            }),
            "update of 's': the state is f16[4], the new value f32[4] (node 0 (input) 'x')");
}

TEST_F(GraphTest, UnprovedEqualityBecomesAGuard) {
  const Dim S = b.symbol("S", 1, 64);
  const Value z = b.input("z", DType::f32, {S, 8});
  const Value y = b.op("add", {x, z}, {}, {"sum"});
  ASSERT_FALSE(b.failed()) << error();
  ASSERT_EQ(b.graph().guards.size(), 1u);
  EXPECT_EQ(b.graph().guards[0].a, T);
  EXPECT_EQ(b.graph().guards[0].b, S);
  EXPECT_EQ(b.graph().guards[0].what, "add: axis 0");
  EXPECT_EQ(b.graph().guards[0].loc.text, "sum");
  b.op("add", {z, x});  // the same test the other way round
  EXPECT_EQ(b.graph().guards.size(), 1u);
  EXPECT_TRUE(b.graph().verify().ok());
  b.output("y", y);
  b.graph().guards.clear();
  EXPECT_EQ(b.graph().verify().error().message(), "add: the guard T == S is lost (node 2 (add) at sum)");
}

// Who names a late size waits for the node that gives it, though no value leads there.
TEST_F(GraphTest, LateSizesOrderNodes) {
  const Dim n = *b.dims().symbol({"n", 0, 8, 1, true}), m = *b.dims().symbol({"m", 0, 8, 1, true});
  const Value first = b.op("sized", {}, {n}), second = b.op("sized", {first}, {m});
  b.output("y", second);
  EXPECT_EQ(b.graph().verify().error().message(),
            "no node gives the late size n (node " + std::to_string(first.node) + " (sized))");
  const Value gives_m = b.op("late", {x}, {m}), gives_n = b.op("late", {gives_m}, {n});
  Graph& g = b.graph();
  ASSERT_TRUE(g.verify().ok()) << g.verify().error().message();
  EXPECT_EQ(g.order(), (std::vector<uint32_t>{x.node, gives_m.node, gives_n.node, first.node, second.node}));
  const std::string text = print(g);
  auto again = parse_graph(text);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(print(*again), text);
  g.compact();
  EXPECT_EQ(print(g), text);

  const Value again_n = b.op("late", {b.op("neg", {x})}, {n});
  b.output("z", again_n);
  EXPECT_NE(g.verify().error().message().find("the late size n is given twice"), std::string::npos);
}

TEST_F(GraphTest, LateSizesCannotWaitForThemselves) {
  const Dim n = *b.dims().symbol({"n", 0, 8, 1, true});
  b.output("y", b.op("late", {b.op("sized", {}, {n})}, {n}));
  EXPECT_NE(b.graph().verify().error().message().find("depends on its own result"), std::string::npos);
  Builder other;
  const Dim late = *other.dims().symbol({"n", 0, 8, 1, true});
  other.input("x", DType::f32, {late});
  EXPECT_EQ(other.graph().verify().error().message(), "'x' exists before the late size n is known");
}

TEST_F(GraphTest, OrderUsersReplaceCompact) {
  const Value w = b.param("w", DType::f32, {8, 8});
  const Value a = b.op("neg", {x}), dead = b.op("neg", {a}), c = b.op("add", {a, a}), d = b.op("dot_general", {c, w});
  b.output("d", d);
  b.output("again", d);
  Graph& g = b.graph();
  EXPECT_EQ(g.order(), (std::vector<uint32_t>{x.node, w.node, a.node, c.node, d.node}));
  const auto users = g.users();
  EXPECT_EQ(users[x.node], (std::vector<uint32_t>{a.node}));
  EXPECT_EQ(users[a.node], (std::vector<uint32_t>{c.node}));  // once, and not by the dead node
  EXPECT_TRUE(users[d.node].empty());
  // Later nodes in front of earlier ones: ids are no order.
  const Value n = b.op("neg", {dead});
  g.replace(a, n);
  EXPECT_EQ(g.at(c).in, (std::vector<Value>{n, n}));
  EXPECT_EQ(g.at(dead).in, (std::vector<Value>{n}));
  EXPECT_FALSE(g.verify().ok());  // neg(neg(n)) reads itself
  EXPECT_NE(g.verify().error().text.find("depends on its own result"), std::string::npos);
}

TEST_F(GraphTest, ReplaceWrapsAndCompactRenumbers) {
  const Value a = b.op("neg", {x}), c = b.op("add", {a, a});
  b.output("c", c);
  b.output("a", a);
  const Value wrapped = b.op("neg", {a});
  Graph& g = b.graph();
  g.replace(a, wrapped);
  EXPECT_EQ(g.at(wrapped).in[0], a);
  EXPECT_EQ(g.at(c).in[0], wrapped);
  EXPECT_EQ(g.outputs()[1].value, wrapped);
  EXPECT_TRUE(g.verify().ok());
  EXPECT_EQ(g.order(), (std::vector<uint32_t>{x.node, a.node, wrapped.node, c.node}));
  b.op("neg", {x});
  const Graph copy = g.clone();
  g.compact();
  EXPECT_EQ(g.node_count(), 4u);
  EXPECT_EQ(g.outputs()[0].value.node, 3u);
  EXPECT_TRUE(g.verify().ok());
  EXPECT_EQ(print(g), print(copy));
  EXPECT_EQ(copy.node_count(), 5u);
}

TEST_F(GraphTest, StatesAreReplacedAtTheEnd) {
  const Value s = b.state("s", DType::f32, {T, 8});
  b.update("s", b.op("add", {s, x}));
  EXPECT_TRUE(b.graph().set_resident("s", false).ok());
  EXPECT_FALSE(b.graph().set_resident("x", false).ok());
  auto g = b.finish();
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->updates().size(), 1u);
  EXPECT_FALSE(g->port("s")->resident);
  EXPECT_EQ(g->order().size(), 3u);
}

TEST_F(GraphTest, RegionsAreVerifiedWithTheirPlace) {
  auto branch = [&](std::shared_ptr<DimTable> dims, bool param) {
    auto r = std::make_unique<Graph>(std::move(dims));
    const Value v = param ? *r->param("v", {DType::f32, {T, 8}}) : *r->input("v", {DType::f32, {T, 8}});
    EXPECT_TRUE(r->output("r", (*r->add(*find_op("neg"), {v}, {}))[0]).ok());
    return r;
  };
  const Value c = b.input("c", DType::boolean, {});
  auto two = [&](bool param, bool own) {
    std::vector<std::unique_ptr<Graph>> v;
    v.push_back(branch(b.graph().dims, false));
    v.push_back(branch(own ? std::make_shared<DimTable>() : b.graph().dims, param));
    return v;
  };
  auto r = b.graph().add(*find_op("if"), {c, x}, {}, {"branch"}, two(false, false));
  ASSERT_TRUE(r.ok()) << r.error().message();
  EXPECT_EQ(b.type((*r)[0]).shape, (Shape{T, 8}));
  EXPECT_TRUE(b.graph().verify().ok());
  EXPECT_EQ(b.graph().add(*find_op("if"), {c, x}, {}, {}, two(true, false)).error().text,
            "if: region 1 sees its arguments only, 'v' is a param");
  const Graph copy = b.graph().clone();
  EXPECT_EQ(copy.at((*r)[0]).regions[1]->node_count(), 2u);
  // A guard lost inside a region is found from outside.
  const Dim S = b.symbol("S", 1, 64);
  auto bad = branch(b.graph().dims, false);
  const Value u = *bad->input("u", {DType::f32, {S, 8}});
  const Value sum = (*bad->add(*find_op("add"), {bad->ports()[0].value, u}, {}))[0];
  EXPECT_TRUE(bad->output("sum", sum).ok());
  bad->guards.clear();
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(bad));
  EXPECT_FALSE(regions[0]->verify().ok());
}

TEST(GraphDeep, ChainsDoNotRecurse) {
  Builder b;
  Value v = b.input("x", DType::f32, {2});
  for (int i = 0; i < 200000; ++i) v = b.op("neg", {v});
  b.output("y", v);
  auto g = b.finish();
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->order().size(), 200001u);
}

}  // namespace
}  // namespace tern
