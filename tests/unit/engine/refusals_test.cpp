// What sessions, parameters and states take and refuse.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "tern/ops/elementwise.h"
#include "tern/ops/linear.h"
#include "tern/ops/reduce.h"
#include "tern/session.h"
#include "unit/engine/harness.h"

namespace tern {
namespace {

using namespace test;

class Sessions : public OnDevice {
 protected:
  // y [B, 2] = x [B, 3] w [2, 3]^T + s, s counts runs; B is 1 .. 6, even.
  Session model() {
    Builder b;
    const Dim rows = b.symbol("B", 2, 6, 2);
    const Value x = b.input("x", DType::f32, {rows, 3}), w = b.param("w", DType::f32, {2, 3}),
                s = b.state("s", DType::f32, {4, 1});
    const Value next = add(b, s, 1);
    b.update("s", next);
    b.output("y", linear(b, x, w));
    b.output("count", next);
    return opened(b, {{"w", {{1, 0, 0, 0, 1, 0}, {2, 3}}}});
  }
  const Floats x_ = Floats(18, 1.f);
};

TEST_P(Sessions, PortsAreTakenByTheirTypeAndSize) {
  Session s = model();
  Floats y(8), wide(100);
  const auto run = [&](std::vector<IoBinding> io, std::vector<SymbolValue> symbols = {}) {
    return code_of(s.run(io, symbols));
  };
  const std::vector<double> doubles(12);
  const auto x = [&](int64_t rows, int64_t columns = 3) { return in(id("x"), x_, {rows, columns}); };
  const auto sized = [&](int64_t rows) {
    return IoBinding{id("x"), view(std::span(x_).first(static_cast<size_t>(rows) * 3), {rows, 3})};
  };
  EXPECT_EQ(run({sized(6)}), "ok");
  EXPECT_EQ(run({sized(2)}), "ok");
  EXPECT_EQ(run({}), "invalid");                                  // missing
  EXPECT_EQ(run({sized(2), sized(2)}), "invalid");                // twice
  EXPECT_EQ(run({x(2)}), "invalid");                              // too many bytes
  EXPECT_EQ(run({sized(3)}), "invalid");                          // no multiple
  EXPECT_EQ(run({sized(0)}), "invalid");                          // below the minimum
  EXPECT_EQ(run({in(id("x"), Floats(24), {8, 3})}), "invalid");   // above the maximum
  EXPECT_EQ(run({in(id("x"), Floats(8), {2, 4})}), "invalid");    // another width
  EXPECT_EQ(run({in(id("x"), Floats(6), {6})}), "invalid");       // another rank
  EXPECT_EQ(run({in(id("x"), Floats(6), {-2, -3})}), "invalid");  // negative
  EXPECT_EQ(run({in(id("x"), {}, {int64_t{1} << 62, 3})}), "limit");
  EXPECT_EQ(run({{id("x"), view(std::span(doubles), {4, 3})}}), "invalid");
  EXPECT_EQ(run({{99, view(std::span(x_), {6, 3})}}), "not_found");
  EXPECT_EQ(run({{id("y"), view(std::span(x_), {6, 3})}}), "invalid");  // an output as an input
  EXPECT_EQ(run({sized(2), {id("w"), view(std::span(x_), {6, 3})}}), "invalid");
  EXPECT_EQ(run({sized(4), out(id("y"), y, {4, 2})}), "ok");
  EXPECT_EQ(run({sized(2), out(id("y"), y, {4, 2})}), "invalid");
  EXPECT_EQ(run({sized(4), out(id("y"), y, {2, 4})}), "invalid");
  EXPECT_EQ(run({sized(4), out(id("y"), wide, {4, 2})}), "invalid");
  EXPECT_EQ(run({sized(4), out(id("y"), y, {4, 2}), out(id("y"), y, {4, 2})}), "invalid");
  EXPECT_EQ(run({sized(4), out(id("x"), y, {4, 2})}), "invalid");
  EXPECT_EQ(run({sized(4)}, {{"B", 4}}), "ok");
  EXPECT_EQ(run({sized(4)}, {{"B", 2}}), "invalid");
  EXPECT_EQ(run({sized(4)}, {{"C", 2}}), "not_found");
}

TEST_P(Sessions, StatesByRows) {
  Session s = model();
  Floats rows(4), one(1);
  const auto bytes = [](Floats& f) { return std::as_writable_bytes(std::span(f)); };
  EXPECT_EQ(code_of(s.read("s", 0, 4, bytes(rows))), "ok");
  EXPECT_EQ(code_of(s.read("s", 3, 1, bytes(one))), "ok");
  EXPECT_EQ(code_of(s.read("s", 4, 0, {})), "ok");
  EXPECT_EQ(code_of(s.read("s", 4, 1, bytes(one))), "invalid");
  EXPECT_EQ(code_of(s.read("s", -1, 1, bytes(one))), "invalid");
  EXPECT_EQ(code_of(s.read("s", 0, -1, {})), "invalid");
  EXPECT_EQ(code_of(s.read("s", INT64_MAX, 1, bytes(one))), "invalid");
  EXPECT_EQ(code_of(s.read("s", 1, INT64_MAX, bytes(one))), "invalid");
  EXPECT_EQ(code_of(s.read("s", INT64_MIN, INT64_MAX, bytes(one))), "invalid");
  EXPECT_EQ(code_of(s.read("s", 0, 2, bytes(one))), "invalid");
  EXPECT_EQ(code_of(s.read("x", 0, 1, bytes(one))), "not_found");
  EXPECT_EQ(code_of(s.write("s", 2, 2, bytes(rows))), "invalid");
  EXPECT_EQ(code_of(s.write("s", 3, 2, bytes(rows))), "invalid");
  rows = {1, 2, 3, 4};
  EXPECT_EQ(code_of(s.write("s", 0, 4, bytes(rows))), "ok");
  EXPECT_EQ(code_of(s.copy_rows("s", 1, 3, s, "s", 0)), "ok");  // over itself
  EXPECT_EQ(code_of(s.copy_rows("s", 2, 3, s, "s", 0)), "invalid");
  EXPECT_EQ(code_of(s.copy_rows("s", 0, 1, s, "s", 4)), "invalid");
  EXPECT_EQ(code_of(s.copy_rows("s", 0, 1, s, "nothing", 0)), "not_found");
  EXPECT_EQ(code_of(s.read("s", 0, 4, bytes(rows))), "ok");
  EXPECT_EQ(rows, (Floats{1, 1, 2, 3}));
}

TEST_P(Sessions, SnapshotsAndClones) {
  Session s = model();
  const std::vector<IoBinding> io = {{id("x"), view(std::span(x_).first(6), {2, 3})}};
  ASSERT_EQ(code_of(s.run(io)), "ok");
  auto snapshot = s.snapshot();
  ASSERT_TRUE(snapshot.ok());
  ASSERT_EQ(code_of(s.run(io)), "ok");
  auto clone = s.clone();
  ASSERT_TRUE(clone.ok());
  ASSERT_EQ(code_of(s.run(io)), "ok");
  Floats now(4);
  const auto count = [&](Session& session) {
    EXPECT_EQ(code_of(session.read("s", 0, 4, std::as_writable_bytes(std::span(now)))), "ok");
    return now[3];
  };
  EXPECT_EQ(count(s), 3);
  EXPECT_EQ(count(*clone), 2);
  ASSERT_EQ(code_of(s.restore(*snapshot)), "ok");
  EXPECT_EQ(count(s), 1);
  EXPECT_EQ(code_of(s.restore({})), "invalid");
  (*snapshot)[0].second.pop_back();
  EXPECT_EQ(code_of(s.restore(*snapshot)), "invalid");
  EXPECT_EQ(count(s), 1);
  ASSERT_EQ(code_of(s.reset_states()), "ok");
  EXPECT_EQ(count(s), 0);
}

TEST_P(Sessions, TicketsThatWereNeverGiven) {
  Session s = model();
  EXPECT_EQ(code_of(s.wait(0)), "ok");
  EXPECT_EQ(code_of(s.wait(77)), "invalid");
  std::promise<std::string> said;
  s.then(77, [&](Status status) { said.set_value(code_of(status)); });
  auto future = said.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(future.get(), "invalid");
  const std::vector<IoBinding> io = {{id("x"), view(std::span(x_).first(6), {2, 3})}};
  const auto ticket = s.submit(io);
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(code_of(s.wait(*ticket)), "ok");
  EXPECT_EQ(code_of(s.wait(*ticket)), "ok");
}

TEST_P(Sessions, ACancelledRunLeavesTheSessionAlive) {
  Session s = model();
  const std::vector<IoBinding> io = {{id("x"), view(std::span(x_).first(6), {2, 3})}};
  CancelToken token;
  token.cancel();
  EXPECT_EQ(code_of(s.run(io, {}, &token)), "cancelled");
  const auto ticket = s.submit(io, {}, &token);
  if (ticket.ok()) {
    EXPECT_EQ(code_of(s.wait(*ticket)), "cancelled");
  }
  token.reset();
  EXPECT_EQ(code_of(s.run(io, {}, &token)), "ok");
}

// Cancelled at any moment, by another thread, while the members of a team are not in step.
TEST(Cancel, AtAnyMomentEndsTheRun) {
  Builder b;
  Value x = b.input("x", DType::f32, {64});
  for (int i = 0; i < 40; ++i) x = add(b, mul(b, x, 0.5), reduce_sum(b, x, AxisList{0}, true));
  b.output("y", x);
  auto graph = b.finish();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  Options options;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  const auto device = open_device("cpu", {.threads = 6, .isa = {}, .cache_dir = {}});
  ASSERT_TRUE(device.ok());
  const auto exe = compile(std::move(*graph), *device, options);
  ASSERT_TRUE(exe.ok()) << exe.error().message();
  auto session = exe->open(exe->params());
  ASSERT_TRUE(session.ok());
  const Floats x_in(64, 1.f);
  const std::vector<IoBinding> io = {in(*exe->io("x"), x_in, {64})};
  int cancelled = 0;
  for (int i = 0; i < 60; ++i) {
    CancelToken token;
    const auto ticket = session->submit(io, {}, &token);
    ASSERT_TRUE(ticket.ok());
    std::this_thread::sleep_for(std::chrono::microseconds(i * 37 % 1500));
    token.cancel();
    const Status done = session->wait(*ticket);
    ASSERT_TRUE(done.ok() || done.error().code == Code::cancelled) << done.error().message();
    cancelled += done.ok() ? 0 : 1;
  }
  EXPECT_EQ(code_of(session->run(io)), "ok");
  RecordProperty("cancelled", cancelled);
}

TEST_P(Sessions, ParametersChangeBetweenRuns) {
  Builder b;
  const Value given = b.input("x", DType::f32, {2, 3}), w = b.param("w", DType::f32, {2, 3});
  b.output("y", add(b, given, reduce_sum(b, w, AxisList{1}, true)));  // the sum hangs on w alone: it is prepared
  Session s = opened(b, {{"w", {Floats(6, 1), {2, 3}}}});
  Session other = *exe_->open(*params_);
  const Floats x(6, 0.5f);
  Floats y(6);
  const std::vector<IoBinding> io = {in(id("x"), x, {2, 3}), out(id("y"), y, {2, 3})};
  ASSERT_NE(exe_->program_text().find("prepare"), std::string::npos) << exe_->program_text();
  ASSERT_EQ(code_of(s.run(io)), "ok");
  EXPECT_EQ(y, Floats(6, 3.5f));
  const Floats two(6, 2), three(3, 3);
  ASSERT_EQ(code_of(params_->set("w", view(std::span(two), {2, 3}))), "ok");
  for (Session* session : {&s, &other}) {
    ASSERT_EQ(code_of(session->run(io)), "ok");
    EXPECT_EQ(y, Floats(6, 6.5f));
  }
  EXPECT_EQ(code_of(params_->set("w", view(std::span(two), {3, 2}))), "invalid");
  EXPECT_EQ(code_of(params_->set("w", view(std::span(three), {2, 3}))), "invalid");
  EXPECT_EQ(code_of(params_->set("v", view(std::span(two), {2, 3}))), "not_found");
  EXPECT_EQ(code_of(params_->set_rows("w", 2, view(std::span(three), {1, 3}))), "invalid");
  EXPECT_EQ(code_of(params_->set_rows("w", -1, view(std::span(three), {1, 3}))), "invalid");
  ASSERT_EQ(code_of(s.run(io)), "ok");
  EXPECT_EQ(y, Floats(6, 6.5f));
}

TEST_P(Sessions, WhatIsMissingOrForeignIsNamed) {
  Session s = model();
  const auto empty = exe_->open(exe_->params());
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.error().text.find("'w'"), std::string::npos) << empty.error().text;
  const std::unique_ptr<Executable> first = std::move(exe_);
  Session again = model();
  EXPECT_FALSE(first->open(*params_).ok());
}

TEST_P(Sessions, SessionsOfOneExecutableRunSideBySide) {
  Session first = model();
  std::vector<Session> sessions;
  for (int i = 0; i < 3; ++i) sessions.push_back(*first.clone());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < sessions.size(); ++t) {
    threads.emplace_back([&, t] {
      const Floats x(12, static_cast<float>(t + 1));
      Floats y(8), count(4);
      for (int i = 0; i < 50; ++i) {
        const std::vector<IoBinding> io = {in(id("x"), x, {4, 3}), out(id("y"), y, {4, 2}),
                                           out(id("count"), count, {4, 1})};
        if (!sessions[t].run(io).ok() || y != Floats(8, static_cast<float>(t + 1)) ||
            count != Floats(4, static_cast<float>(i + 1)))
          ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, Sessions, testing::Values("cpu", "mean", kInterpreted));

}  // namespace
}  // namespace tern
