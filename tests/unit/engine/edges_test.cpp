// Graphs at the edge of what a graph is: nothing in them, leaves that leave again, nothing to compute on.
#include <cmath>
#include <memory>

#include "tern/ops/elementwise.h"
#include "tern/ops/linear.h"
#include "tern/ops/norm.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "unit/engine/harness.h"

namespace tern {
namespace {

using namespace test;

class Graphs : public OnDevice {};

TEST_P(Graphs, NothingAtAll) {
  Builder b;
  Session session = opened(b);
  EXPECT_EQ(code_of(session.run({})), "ok");
  EXPECT_EQ(code_of(session.run({})), "ok");
}

TEST_P(Graphs, LeavesThatLeaveAgain) {
  Builder b;
  const Dim n = b.symbol("N", 0, 5);
  const Value x = b.input("x", DType::f32, {n}), w = b.param("w", DType::f32, {3}), s = b.state("s", DType::f32, {2});
  b.input("unused", DType::f32, {n, 2});
  b.param("idle", DType::f32, {4});
  for (const char* name : {"x1", "x2"}) b.output(name, x);
  b.output("w1", w);
  b.output("s1", s);
  b.output("c", b.constant(DType::f32, 7));
  const Value y = mul(b, x, 2);
  b.output("y1", y);
  b.output("y2", y);
  Session session = opened(b, {{"w", {{1, 2, 3}, {3}}}, {"idle", {{0, 0, 0, 0}, {4}}}});
  for (const int64_t size : {5, 1, 0, 3}) {
    const auto n_floats = static_cast<size_t>(size);
    Floats x_in(n_floats), unused(2 * n_floats), x1(n_floats), x2(n_floats), w1(3), s1(2, 9), c(1), y1(n_floats),
        y2(n_floats), twice(n_floats);
    for (size_t i = 0; i < n_floats; ++i) x_in[i] = static_cast<float>(i) + 0.5f, twice[i] = 2 * x_in[i];
    const std::vector<IoBinding> io = {in(id("x"), x_in, {size}), in(id("unused"), unused, {size, 2}),
                                       out(id("x1"), x1, {size}), out(id("x2"), x2, {size}),
                                       out(id("w1"), w1, {3}),    out(id("s1"), s1, {2}),
                                       out(id("c"), c, {}),       out(id("y1"), y1, {size}),
                                       out(id("y2"), y2, {size})};
    const Status run = session.run(io);
    ASSERT_TRUE(run.ok()) << run.error().message();
    EXPECT_EQ(x1, x_in);
    EXPECT_EQ(x2, x_in);
    EXPECT_EQ(w1, (Floats{1, 2, 3}));
    EXPECT_EQ(s1, (Floats{0, 0}));
    EXPECT_EQ(c, Floats{7});
    EXPECT_EQ(y1, twice);
    EXPECT_EQ(y2, twice);
  }
}

TEST_P(Graphs, StatesThatSwap) {
  Builder b;
  const Value p = b.state("p", DType::f32, {2}), q = b.state("q", DType::f32, {2});
  b.update("p", q);
  b.update("q", p);
  ASSERT_TRUE(b.graph().set_resident("p", false).ok());
  ASSERT_TRUE(b.graph().set_resident("q", false).ok());
  auto exe = compiled(b);
  ASSERT_TRUE(exe.ok()) << exe.error().message();
  auto session = exe->open(exe->params());
  ASSERT_TRUE(session.ok());
  const Floats one = {1, 2}, two = {3, 4};
  ASSERT_TRUE(session->write("p", 0, 2, std::as_bytes(std::span(one))).ok());
  ASSERT_TRUE(session->write("q", 0, 2, std::as_bytes(std::span(two))).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(code_of(session->run({})), "ok");
    Floats p_now(2), q_now(2);
    ASSERT_TRUE(session->read("p", 0, 2, std::as_writable_bytes(std::span(p_now))).ok());
    ASSERT_TRUE(session->read("q", 0, 2, std::as_writable_bytes(std::span(q_now))).ok());
    EXPECT_EQ(p_now, i % 2 == 0 ? two : one);
    EXPECT_EQ(q_now, i % 2 == 0 ? one : two);
  }
}

TEST_P(Graphs, StatesFromInputsAndParams) {
  Builder b;
  const Value x = b.input("x", DType::f32, {2}), w = b.param("w", DType::f32, {2});
  for (const char* name : {"s", "t", "u"}) b.state(name, DType::f32, {2});
  b.update("s", x);
  b.update("t", w);
  b.update("u", x);
  for (const char* name : {"s", "t", "u"}) ASSERT_TRUE(b.graph().set_resident(name, false).ok());
  Session session = opened(b, {{"w", {{5, 6}, {2}}}});
  const Floats x_in = {1, 2};
  const std::vector<IoBinding> io = {in(id("x"), x_in, {2})};
  ASSERT_EQ(code_of(session.run(io)), "ok");
  for (const auto& [name, want] : {std::pair{"s", x_in}, {"t", Floats{5, 6}}, {"u", x_in}}) {
    Floats got(2);
    ASSERT_TRUE(session.read(name, 0, 2, std::as_writable_bytes(std::span(got))).ok());
    EXPECT_EQ(got, want) << name;
  }
}

TEST_P(Graphs, NoRowsNoColumns) {
  Builder b;
  const Dim n = b.symbol("N", 0, 4), k = b.symbol("K", 0, 4);
  const Value x = b.input("x", DType::f32, {n, k});
  b.output("sum", reduce_sum(b, x, AxisList{1}));
  b.output("all", reduce_sum(b, x));
  b.output("prod", reduce_prod(b, x, AxisList{1}));
  b.output("most", reduce_max(b, x, AxisList{1}));
  b.output("dot", matmul(b, x, transpose(b, x, {1, 0})));
  b.output("both", concat(b, {x, mul(b, x, -1)}, 0));
  Session session = opened(b);
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{2, 3}, {0, 3}, {2, 0}, {0, 0}, {4, 4}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const auto r = static_cast<size_t>(rows), c = static_cast<size_t>(columns);
    Floats x_in(r * c, 2.f), sum(r, 9), all(1, 9), prod(r, 9), most(r, 9), dot(r * r, 9), both(2 * r * c, 9);
    const std::vector<IoBinding> io = {in(id("x"), x_in, {rows, columns}),
                                       out(id("sum"), sum, {rows}),
                                       out(id("all"), all, {}),
                                       out(id("prod"), prod, {rows}),
                                       out(id("most"), most, {rows}),
                                       out(id("dot"), dot, {rows, rows}),
                                       out(id("both"), both, {2 * rows, columns})};
    const Status run = session.run(io);
    ASSERT_TRUE(run.ok()) << run.error().message();
    const auto count = static_cast<float>(columns);
    EXPECT_EQ(sum, Floats(r, 2 * count));
    EXPECT_EQ(all, Floats{2 * count * static_cast<float>(rows)});
    EXPECT_EQ(prod, Floats(r, std::pow(2.f, count)));
    EXPECT_EQ(most, Floats(r, columns > 0 ? 2.f : -INFINITY));
    EXPECT_EQ(dot, Floats(r * r, 4 * count));
    for (size_t i = 0; i < both.size(); ++i) EXPECT_EQ(both[i], i < r * c ? 2.f : -2.f);
  }
}

TEST_P(Graphs, TiesThatMakeNoSense) {
  const auto with = [&](std::vector<std::pair<std::string, std::string>> ties) {
    Builder b;
    const Value x = b.input("x", DType::f32, {2}), z = b.input("z", DType::f32, {3});
    b.output("y", add(b, x, 1));
    b.output("y2", add(b, x, 2));
    b.output("wide", z);
    Options options;
    options.ties = std::move(ties);
    const auto exe = compiled(b, options);
    return exe.ok() ? std::string("ok") : std::string(code_name(exe.error().code)) + ": " + exe.error().message();
  };
  EXPECT_EQ(with({{"y", "x"}}), "ok");
  for (const auto& [bad, name] : std::vector<std::pair<std::vector<std::pair<std::string, std::string>>, std::string>>{
           {{{"nowhere", "x"}}, "nowhere"},
           {{{"y", "nothing"}}, "nothing"},
           {{{"y", "x"}, {"y2", "x"}}, "'x'"},
           {{{"y", "x"}, {"y", "z"}}, "'y'"},
           {{{"wide", "x"}}, "wide"}}) {
    const std::string said = with(bad);
    EXPECT_EQ(said.rfind("invalid", 0), 0u) << said;
    EXPECT_NE(said.find(name), std::string::npos) << said;
  }
}

TEST_P(Graphs, SizesThatNoMachineHolds) {
  for (const int64_t most : {int64_t{1} << 33, int64_t{1} << 45, int64_t{1} << 60, INT64_MAX}) {
    for (const bool symbolic : {true, false}) {
      SCOPED_TRACE(std::to_string(most) + (symbolic ? " at most" : ""));
      Builder b;
      const Dim n = symbolic ? b.symbol("N", 1, most) : Dim(most);
      const Value x = b.input("x", DType::f32, {n, 3}), w = b.param("w", DType::f32, {5, 3});
      b.state("s", DType::f32, {n});
      b.output("y", linear(b, mul(b, x, 2), w));
      b.output("sum", reduce_sum(b, x));
      const auto exe = compiled(b);
      if (!exe) {
        EXPECT_FALSE(exe.error().text.empty());
        continue;
      }
      (void)exe->memory();
      (void)exe->explain();
      Params params = exe->params();
      const Floats w_in(15, 1.f);
      ASSERT_TRUE(params.set("w", view(std::span(w_in), {5, 3})).ok());
      const auto session = exe->open(params);
      ASSERT_FALSE(session.ok());
      EXPECT_TRUE(session.error().code == Code::out_of_memory || session.error().code == Code::limit)
          << session.error().message();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Graphs, testing::Values("cpu", "mean", kInterpreted));

}  // namespace
}  // namespace tern
