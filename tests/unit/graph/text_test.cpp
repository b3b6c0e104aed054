#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "test_ops.h"

namespace tern {
namespace {

Graph parsed(std::string_view text) {
  auto g = parse_graph(text);
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.error().message());
  return g.ok() ? std::move(*g) : Graph();
}

// Written by hand, so that it says what the printer must say.
constexpr std::string_view kModel = R"(graph {
  symbol T in [1, 512]
  symbol past in [0, 4096] multiple 8
  %x = input "x" : f32[T, 64]
  %blk.0/w = param "blk.0/w" : q4_1[64, 64]
  %0 = param "odd name" : f16[64] loc "file \"a\""
  %kv = state "kv" : f16[past + T, 64]
  %s = state "s" : f32[T, 64] transient
  %1 = dot_general(%x, %blk.0/w) : f32[T, 64] loc "blk.0"
  %2, %3 = split(%1) {parts = 2} : f32[T, 32], f32[T, 32]
  %4 = add(%2, %3) : f32[T, 32]
  %5 = constant() {value = f32[] {0.1}} : f32[]
  %6 = add(%s, %x) : f32[T, 64]
  output "y" %4
  output "c" %5
  update "s" %6
}
)";

TEST(Text, ParsesAndPrintsTheSame) {
  const Graph g = parsed(kModel);
  EXPECT_EQ(print(g), kModel);
  EXPECT_FALSE(g.port("s")->resident);
  EXPECT_TRUE(g.port("kv")->resident);
  EXPECT_EQ(g.type(g.port("blk.0/w")->value).format, format_by_name("q4_1"));
  EXPECT_EQ(g.type(g.port("blk.0/w")->value).dtype, DType::f32);
  EXPECT_EQ(g.node(g.port("odd name")->value.node).loc.text, "file \"a\"");
  EXPECT_EQ(g.dims->symbols()[1].multiple, 8);
}

TEST(Text, EveryAttributeKind) {
  Builder b;
  const Dim T = b.symbol("T", 1, 9);
  const Value x = b.input("x", DType::f32, {T});
  const Const numbers = make_const<float>(DType::f32, {2, 2}, {1.5f, -0.0f, INFINITY, 1e-40f});
  const Value y = b.op("every", {x},
                       {true, int64_t{-7}, 0.1, std::string("a\"b\\\n\x01"), DType::bf16, std::vector<int64_t>{1, -2},
                        b.dims().add(T, 3), Shape{T, 4}, numbers});
  const Value z =
      b.op("every", {y},
           {false, INT64_MIN, -INFINITY, std::string(), DType::boolean, std::vector<int64_t>{}, int64_t{3},
            std::vector<int64_t>{}, make_const<uint64_t>(DType::u64, {1}, {UINT64_MAX}), false, 2.5, std::string("x")});
  b.output("z", z);
  ASSERT_FALSE(b.failed()) << b.error()->message();
  const std::string text = print(b.graph());
  EXPECT_EQ(text, R"(graph {
  symbol T in [1, 9]
  %x = input "x" : f32[T]
  %0 = every(%x) {b = true, i = -7, r = 0.1, t = "a\"b\\\n\x01", d = bf16, list = [1, -2], n = T + 3, s = [T, 4], c = f32[2, 2] {1.5, -0, inf, 1e-40}} : f32[T]
  %1 = every(%0) {b = false, i = -9223372036854775808, r = -inf, t = "", d = bool, list = [], n = 3, s = [], c = u64[1] {18446744073709551615}, ob = false, or = 2.5, ot = "x"} : f32[T]
  output "z" %1
}
)");
  const Graph g = parsed(text);
  EXPECT_EQ(print(g), text);
  EXPECT_EQ(std::get<Const>(g.node(1).attrs[8]), numbers);
  EXPECT_EQ(std::get<bool>(g.node(1).attrs[9]), true);
  EXPECT_EQ(g.node(2).attrs[0], Attr(false));
}

TEST(Text, ConstantsKeepTheirBits) {
  Builder b;
  auto add = [&](std::string name, Const c) { b.output(std::move(name), b.constant(std::move(c))); };
  add("nan", make_const<uint32_t>(DType::f32, {1}, {0x7fc12345}));  // a payload: hexadecimal
  add("f16", make_const<uint16_t>(DType::f16, {3}, {0x0001, 0x3555, 0xfbff}));
  add("bf16", make_const<uint16_t>(DType::bf16, {1}, {0x3eab}));
  add("f8", make_const<uint8_t>(DType::f8e4m3, {2}, {0x01, 0xfe}));
  add("c64", make_const<float>(DType::c64, {1}, {1, -2}));
  add("i8", make_const<int8_t>(DType::i8, {2}, {-128, 127}));
  add("bool", make_const<uint8_t>(DType::boolean, {2}, {1, 0}));
  add("empty", Const{DType::f32, {0}, std::make_shared<std::vector<std::byte>>()});
  std::vector<double> many(17);
  for (size_t i = 0; i < many.size(); ++i) many[i] = 1.0 / static_cast<double>(i + 1);
  add("many", make_const<double>(DType::f64, {17}, many));
  ASSERT_FALSE(b.failed()) << b.error()->message();
  const std::string text = print(b.graph());
  const Graph g = parsed(text);
  EXPECT_EQ(print(g), text);
  ASSERT_EQ(g.outputs().size(), 9u);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(g.at(g.outputs()[i].value).attrs[0], b.graph().at(b.graph().outputs()[i].value).attrs[0])
        << g.outputs()[i].name;
  }
  EXPECT_NE(text.find("{value = f32[1] hex \"4523c17f\"}"), std::string::npos) << text;
  EXPECT_NE(text.find("f16[3] {5.9604645e-08, 0.33325195, -65504}"), std::string::npos) << text;
}

TEST(Text, RegionsAndGuards) {
  constexpr std::string_view text = R"(graph {
  symbol S in [1, 64]
  symbol T in [1, 512]
  %c = input "c" : bool[]
  %x = input "x" : f32[T, 8]
  %z = input "z" : f32[S, 8]
  %0 = add(%x, %z) : f32[T, 8] loc "sum"
  %1 = if(%c, %0) : f32[T, 8] loc "branch" with graph {
    %v = input "v" : f32[T, 8]
    %0 = neg(%v) : f32[T, 8]
    output "r" %0
  }, graph {
    %v = input "v" : f32[T, 8]
    output "r" %v
  }
  guard T == S "add: axis 0" loc "sum"
  output "y" %1
}
)";
  const Graph g = parsed(text);
  EXPECT_EQ(print(g), text);
  EXPECT_EQ(g.guards.size(), 1u);
  EXPECT_EQ(g.at(g.outputs()[0].value).regions[1]->dims, g.dims);
}

TEST(Text, EqualGraphsPrintEqually) {
  auto make = [](bool other) {
    Builder b;
    if (other) b.symbol("unused", 1, 2), b.symbol("P", 0, 7);
    const Dim T = b.symbol("T", 1, 9), P = b.symbol("P", 0, 7);
    const Value x = b.input("x", DType::f32, {other ? b.dims().add(P, T) : b.dims().add(T, P)});
    const Value dead = other ? b.op("neg", {x}) : x;
    const Value l = other ? Value{} : b.op("neg", {x});
    const Value r = b.op("sum", {x});
    (void)dead;
    b.output("y", b.op("add", {other ? b.op("neg", {x}) : l, r}));
    return print(b.graph());
  };
  EXPECT_EQ(make(false), make(true));
}

TEST(Text, CommentsAndSpaceAreFree) {
  EXPECT_EQ(print(parsed("graph{// a\n%x=input\"x\":f32[2]%y=neg(%x):f32[2]output\"y\"%y}")),
            "graph {\n  %x = input \"x\" : f32[2]\n  %0 = neg(%x) : f32[2]\n  output \"y\" %0\n}\n");
}

TEST(Text, ErrorsSayLineAndColumn) {
  auto message = [](std::string_view body) {
    auto g = parse_graph("graph {\n  %x = input \"x\" : f32[4]\n" + std::string(body) + "\n}\n");
    return g.ok() ? std::string("none") : g.error().message();
  };
  EXPECT_EQ(message("  %y = neg(%z) : f32[4]"), "%z is not defined (3:12)");
  EXPECT_EQ(message("  %y = nag(%x) : f32[4]"), "no op is named 'nag' (3:8)");
  EXPECT_EQ(message("  %y = neg(%x) : f32[5]"), "neg: result 0 is f32[4], not f32[5] (3:8)");
  EXPECT_EQ(message("  %y = neg(%x) : f32[4], f32[4]"), "neg has 1 results, not 2 (3:8)");
  EXPECT_EQ(message("  %y, %z = neg(%x) : f32[4]"), "2 names for 1 results (3:12)");
  EXPECT_EQ(message("  %y = split(%x) {parts = 3} : f32[1]"),
            "split: last axis: 4 is no multiple of 3 (3:8, node 1 (split))");
  EXPECT_EQ(message("  %y = split(%x) {part = 2} : f32[2]"), "split has no attribute part (3:19)");
  EXPECT_EQ(message("  %y = split(%x) {parts = 2, parts = 2} : f32[2]"), "split: twice attribute parts (3:30)");
  EXPECT_EQ(message("  %y = split(%x) : f32[2]"), "split: attribute parts is missing (3:18)");
  EXPECT_EQ(message("  %y = split(%x) {parts = 99999999999999999999} : f32[2]"),
            "the number does not fit an integer of 64 bits (3:27)");
  EXPECT_EQ(message("  %x = neg(%x) : f32[4]"), "%x is defined twice (3:8)");
  EXPECT_EQ(message("  %y = input \"x\" : f32[4]"), "input 'x': the name is taken (3:3)");
  EXPECT_EQ(message("  %y = input \"y\" : f33[4]"), "no element type or format is named 'f33' (3:20)");
  EXPECT_EQ(message("  %y = param \"y\" : q4_1[4, 33]"),
            "param 'y': shape [4, 33]: axis 1 is no multiple of 32, the block of q4_1 (3:3)");
  EXPECT_EQ(message("  %y = input \"y\" : f32[U]"), "dim: no symbol is named 'U' (3:24)");
  EXPECT_EQ(message("  output \"y\" %x output \"y\" %x"), "output 'y': the name is taken (3:17)");
  EXPECT_EQ(message("  update \"x\" %x"), "update of 'x': no state has this name (3:3)");
  EXPECT_EQ(message("  frob"), "expected symbol, guard, output, update or a value, found 'frob' (3:3)");
  EXPECT_EQ(message("  %y = constant() {value = f32[2] {1}} : f32[2]"),
            "the constant has 4 bytes, its type wants 8 (3:28)");
  EXPECT_EQ(message("  %y = constant() {value = i8[1] {128}} : i8[1]"), "128 is no i8 (3:35)");
  EXPECT_EQ(message("  symbol T in [3, 2]"), "symbol T: no multiple of 1 in [3, 2] (3:3)");
  EXPECT_EQ(message("} extra"), "expected the end after the graph (3:3)");
  EXPECT_FALSE(parse_graph("").ok());
  std::string nested = "graph {%c = input \"c\" : bool[]";
  for (int i = 0; i < 1000; ++i) nested += " %1 = if(%c) : f32[] with graph {";
  EXPECT_EQ(parse_graph(nested).ok(), false);
}

// Damaged texts: the parser answers with an error or a graph that verifies and prints to a fixed point.
TEST(Text, SurvivesDamage) {
  std::mt19937 rng(11);
  std::string all(kModel);
  all += "{}[](),=:%\"\\/ 0123456789-+*Tx_.graphconstantf32hexwithloclatemultiplefloordiv";
  int good = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text(kModel);
    for (int edits = static_cast<int>(rng() % 4) + 1; edits > 0; --edits) {
      const size_t at = rng() % text.size(), n = rng() % 12;
      switch (rng() % 4) {
        case 0: text.erase(at, n); break;
        case 1: text.insert(at, all.substr(rng() % all.size(), n)); break;
        case 2: text[at] = static_cast<char>(rng()); break;
        default: text.replace(at, n, text.substr(rng() % text.size(), rng() % 40)); break;
      }
      if (text.empty()) text = "g";
    }
    auto g = parse_graph(text);
    if (!g) {
      ASSERT_NE(g.error().message().find_first_of("0123456789"), std::string::npos) << g.error().message();
      continue;
    }
    ++good;
    const std::string once = print(*g);
    auto again = parse_graph(once);
    ASSERT_TRUE(again.ok()) << again.error().message() << "\n" << once;
    ASSERT_EQ(print(*again), once);
  }
  EXPECT_GT(good, 200);
}

}  // namespace
}  // namespace tern
