// What a session promises, on every device: tern/session.h and the page of the room, sentence by sentence.
#include "tern/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/shape.h"
#include "unit/places.h"

namespace tern {
namespace {

// y = x w^T over N rows; the state `seen` [4, 3] gets x's last row at row `at`; `count` [1] counts the runs.
Result<Graph> small_graph(int64_t state_rows = 4) {
  Builder b;
  const Dim n = b.symbol("N", 1, 8);
  const Value x = b.input("x", DType::f32, {n, 3});
  const Value at = b.input("at", DType::i32, {1});
  const Value w = b.param("w", DType::f32, {2, 3});
  b.output("y", linear(b, x, w));
  const Value seen = b.state("seen", DType::f32, {state_rows, 3});
  b.update("seen", store_rows(b, seen, at, slice(b, x, 0, b.dims().sub(n, 1), n)));
  const Value count = b.state("count", DType::f32, {1});
  b.update("count", add(b, count, 1));
  return b.finish();
}

template <class T>
std::span<const std::byte> bytes(const std::vector<T>& v) {
  return std::as_bytes(std::span(v));
}

class SessionTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
    auto device = open_device(GetParam());
    ASSERT_TRUE(device.ok()) << device.error().message();
    device_.emplace(std::move(*device));
    exe_.emplace(make());
    params_.emplace(exe_->params());
    ASSERT_TRUE(params_->set("w", view<float>(w_, {2, 3})).ok());
  }
  Executable make(int64_t state_rows = 4) {
    Options options;
    options.plugin_path = TERN_LLVM_PLUGIN_PATH;
    options.cache_dir = "none";
    auto exe = compile(std::move(*small_graph(state_rows)), *device_, options);
    EXPECT_TRUE(exe.ok()) << (exe.ok() ? "" : exe.error().message());
    return std::move(*exe);
  }
  Session open() {
    auto session = exe_->open(*params_);
    EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message());
    return std::move(*session);
  }
  IoId id(std::string_view name) const { return *exe_->io(name); }
  IoBinding x(int64_t n) const {
    return {id("x"), view<float>(std::span(x_).first(static_cast<size_t>(n * 3)), {n, 3})};
  }
  IoBinding at(const std::vector<int32_t>& row) const { return {id("at"), view<int32_t>(row, {1})}; }
  Status run(Session& session, int64_t n, int32_t row, std::vector<float>* y = nullptr) {
    const std::vector<int32_t> rows = {row};
    std::vector<IoBinding> io = {x(n), at(rows)};
    if (y != nullptr) {
      y->assign(static_cast<size_t>(n * 2), -1);
      io.push_back({id("y"), mutable_view<float>(*y, {n, 2})});
    }
    return session.run(io);
  }
  static std::vector<float> state(Session& session, const char* name, int64_t first, int64_t rows, int64_t columns) {
    std::vector<float> out(static_cast<size_t>(rows * columns));
    const Status read = session.read(name, first, rows, std::as_writable_bytes(std::span(out)));
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message());
    return out;
  }
  static void refused(const Status& status, Code code, const std::string& words) {
    ASSERT_FALSE(status.ok()) << words;
    EXPECT_EQ(status.error().code, code) << status.error().message();
    EXPECT_NE(status.error().text.find(words), std::string::npos) << status.error().text;
  }

  std::optional<Device> device_;
  std::optional<Executable> exe_;
  std::optional<Params> params_;
  const std::vector<float> w_ = {1, 0, 0, 0, 10, 100};
  const std::vector<float> x_ = [] {
    std::vector<float> v(24);
    for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i + 1);
    return v;
  }();
};

// ---- inputs and outputs

TEST_P(SessionTest, NamesResolveToIndicesOnce) {
  EXPECT_EQ(exe_->io()[id("x")].name, "x");
  EXPECT_EQ(exe_->io()[id("x")].kind, IoKind::input);
  EXPECT_EQ(exe_->io()[id("y")].kind, IoKind::output);
  EXPECT_EQ(exe_->io()[id("seen")].kind, IoKind::state);
  EXPECT_EQ(exe_->io("z").error().code, Code::not_found);
}

TEST_P(SessionTest, RunsEverySizeOfOneCompilation) {
  Session session = open();
  for (const int64_t n : {3, 1, 8, 2, 5, 8, 1}) {
    std::vector<float> y;
    ASSERT_TRUE(run(session, n, 0, &y).ok());
    for (int64_t r = 0; r < n; ++r) {
      const float* row = x_.data() + r * 3;
      EXPECT_EQ(y[static_cast<size_t>(r * 2)], row[0]) << n;
      EXPECT_EQ(y[static_cast<size_t>(r * 2 + 1)], 10 * row[1] + 100 * row[2]) << n;
    }
    EXPECT_EQ(*session.shape(id("y")), (std::vector<int64_t>{n, 2}));
  }
}

TEST_P(SessionTest, OutputsAreOptional) {
  Session session = open();
  EXPECT_TRUE(run(session, 2, 0).ok());
  EXPECT_EQ(state(session, "count", 0, 1, 1), std::vector<float>{1});
}

TEST_P(SessionTest, UnknownMissingAndTwiceAreErrorsThatNameThePort) {
  Session session = open();
  const std::vector<int32_t> row = {0};
  std::vector<float> y(4);
  refused(session.run({{x(2)}}), Code::invalid, "input 'at' is missing");
  refused(session.run({{x(2), at(row), {99, view<float>(x_, {8, 3})}}}), Code::not_found, "index 99");
  refused(session.run({{x(2), at(row), at(row)}}), Code::invalid, "'at' is given twice");
  refused(session.run({{x(2), at(row), {id("w"), view<float>(w_, {2, 3})}}}), Code::invalid, "'w'");
  refused(session.run({{x(2), at(row), {id("x"), mutable_view<float>(y, {2, 2})}}}), Code::invalid, "'x'");
  const std::vector<IoBinding> good = {x(2), at(row)};
  refused(session.run(good, {{{"M", 1}}}), Code::not_found, "'M'");
  refused(session.run(good, {{{"N", 3}}}), Code::invalid, "N is 2 by input 'x' axis 0 and 3 by the caller");
  EXPECT_EQ(state(session, "count", 0, 1, 1), std::vector<float>{0}) << "a refused run changes nothing";
  EXPECT_TRUE(session.run(good).ok());
}

TEST_P(SessionTest, WrongTypesShapesAndSizesAreErrors) {
  Session session = open();
  const std::vector<int32_t> row = {0};
  const std::vector<double> wide(6);
  std::vector<float> y(4);
  refused(session.run({{{id("x"), view<double>(wide, {2, 3})}, at(row)}}), Code::invalid,
          "'x' is f64, the program wants f32");
  refused(session.run({{{id("x"), view<float>(x_, {24})}, at(row)}}), Code::invalid, "'x' has shape [24]");
  refused(session.run({{{id("x"), view<float>(x_, {6, 4})}, at(row)}}), Code::invalid, "'x'");
  refused(session.run({{{id("x"), view<float>(x_, {2, 3})}, at(row)}}), Code::invalid, "needs 24 bytes and has 96");
  refused(session.run({{{id("x"), view<float>({}, {0, 3})}, at(row)}}), Code::invalid, "N = 0 lies outside [1, 8]");
  const std::vector<float> many(27);
  refused(session.run({{{id("x"), view<float>(many, {9, 3})}, at(row)}}), Code::invalid, "N = 9 lies outside [1, 8]");
  refused(session.run({{x(2), at(row), {id("y"), mutable_view<float>(y, {1, 2})}}}), Code::invalid, "'y'");
  refused(session.run({{x(2), at(row), {id("y"), mutable_view<float>(std::span(y).first(3), {2, 2})}}}), Code::invalid,
          "'y' needs 16 bytes and the view has 12");
  EXPECT_EQ(state(session, "count", 0, 1, 1), std::vector<float>{0});
}

TEST_P(SessionTest, SubmitsAndTellsWhenDone) {
  Session session = open();
  const std::vector<int32_t> row = {1};
  std::vector<float> y(16);
  std::atomic<int> told{0};
  const auto ticket = session.submit({{x(8), at(row), {id("y"), mutable_view<float>(y, {8, 2})}}});
  ASSERT_TRUE(ticket.ok()) << ticket.error().message();
  session.then(*ticket, [&](Status status) { told = status.ok() ? 1 : -1; });
  ASSERT_TRUE(session.wait(*ticket).ok());
  EXPECT_EQ(y[14], 22);
  while (told == 0) std::this_thread::yield();
  EXPECT_EQ(told, 1);
}

// ---- parameters

TEST_P(SessionTest, ParametersAreSetWholeAndChecked) {
  Params params = exe_->params();
  EXPECT_EQ(params.missing(), std::vector<std::string>{"w"});
  EXPECT_EQ(exe_->open(params).error().code, Code::invalid);
  refused(params.set("v", view<float>(w_, {2, 3})), Code::not_found, "'v'");
  refused(params.set("w", view<float>(w_, {3, 2})), Code::invalid, "'w' is f32[3, 2], the program wants f32[2, 3]");
  refused(params.set("w", view<float>(std::span(w_).first(5), {2, 3})), Code::invalid, "'w'");
  EXPECT_EQ(params.missing(), std::vector<std::string>{"w"});
  EXPECT_TRUE(params.set("w", view<float>(w_, {2, 3})).ok());
  EXPECT_TRUE(params.missing().empty());
  const Executable other = make();
  EXPECT_EQ(other.open(params).error().code, Code::invalid) << "parameters of another executable";
}

TEST_P(SessionTest, SessionsShareParameters) {
  Session a = open(), b = open();
  EXPECT_EQ(a.memory().weights, params_->bytes());
  std::vector<float> y;
  ASSERT_TRUE(run(a, 1, 0, &y).ok());
  EXPECT_EQ(y, (std::vector<float>{1, 320}));
  const std::vector<float> other = {2, 0, 0, 0, 0, 1};
  ASSERT_TRUE(params_->set("w", view<float>(other, {2, 3})).ok());
  for (Session* session : {&a, &b}) {
    ASSERT_TRUE(run(*session, 1, 0, &y).ok());
    EXPECT_EQ(y, (std::vector<float>{2, 3}));
  }
}

TEST_P(SessionTest, ParametersAreSetByRows) {
  Builder b;
  b.output("y", gather(b, b.param("table", DType::f32, {4, 2}), b.input("at", DType::i32, {4})));
  Options options;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  options.cache_dir = "none";
  auto exe = compile(std::move(*b.finish()), *device_, options);
  ASSERT_TRUE(exe.ok()) << exe.error().message();
  Params params = exe->params();
  const std::vector<float> all = {0, 1, 2, 3, 4, 5, 6, 7}, two = {-1, -2, -3, -4};
  refused(params.set_rows("table", 1, view<float>(two, {2, 2})), Code::invalid, "set it whole first");
  ASSERT_TRUE(params.set("table", view<float>(all, {4, 2})).ok());
  auto session = exe->open(params);
  ASSERT_TRUE(session.ok());
  refused(params.set_rows("table", 3, view<float>(two, {2, 2})), Code::invalid, "outside parameter 'table'");
  const Status set = params.set_rows("table", 1, view<float>(two, {2, 2}));
  ASSERT_TRUE(set.ok()) << set.error().message();
  const std::vector<int32_t> rows = {0, 1, 2, 3};
  std::vector<float> y(8);
  ASSERT_TRUE(
      session->run({{{*exe->io("at"), view<int32_t>(rows, {4})}, {*exe->io("y"), mutable_view<float>(y, {4, 2})}}})
          .ok());
  EXPECT_EQ(y, (std::vector<float>{0, 1, -1, -2, -3, -4, 6, 7}));
}

// ---- states

TEST_P(SessionTest, StatesStartAtZeroAndAreReplacedAtTheEnd) {
  Session session = open();
  EXPECT_EQ(state(session, "seen", 0, 4, 3), std::vector<float>(12));
  ASSERT_TRUE(run(session, 2, 1).ok());
  ASSERT_TRUE(run(session, 3, 3).ok());
  EXPECT_EQ(state(session, "seen", 0, 4, 3), (std::vector<float>{0, 0, 0, 4, 5, 6, 0, 0, 0, 7, 8, 9}));
  EXPECT_EQ(state(session, "count", 0, 1, 1), std::vector<float>{2});
}

TEST_P(SessionTest, StatesAreReadAndWrittenByRows) {
  Session session = open();
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(session.write("seen", 1, 2, bytes(rows)).ok());
  EXPECT_EQ(state(session, "seen", 0, 4, 3), (std::vector<float>{0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0}));
  EXPECT_EQ(state(session, "seen", 2, 1, 3), (std::vector<float>{4, 5, 6}));
  ASSERT_TRUE(session.reset_states().ok());
  EXPECT_EQ(state(session, "seen", 0, 4, 3), std::vector<float>(12));
}

TEST_P(SessionTest, StatesRefuseWhatIsNotTheirs) {
  Session session = open();
  std::vector<float> rows(6);
  const auto to = std::as_writable_bytes(std::span(rows));
  refused(session.read("unknown", 0, 2, to), Code::not_found, "'unknown'");
  refused(session.read("x", 0, 2, to), Code::not_found, "'x'");
  refused(session.read("seen", 3, 2, to), Code::invalid, "2 rows from row 3 on lie outside state 'seen' with 4 rows");
  refused(session.read("seen", -1, 2, to), Code::invalid, "'seen'");
  refused(session.read("seen", 0, 1, to), Code::invalid, "'seen'");
  refused(session.write("seen", 0, 3, to), Code::invalid, "'seen'");
  refused(session.write("seen", INT64_MAX, 2, to), Code::invalid, "'seen'");
}

TEST_P(SessionTest, RowsAreCopiedBetweenSessionsOfDifferentCapacity) {
  Session from = open();
  ASSERT_TRUE(run(from, 2, 1).ok());
  Executable large = make(9);
  Params params = large.params();
  ASSERT_TRUE(params.set("w", view<float>(w_, {2, 3})).ok());
  auto to = large.open(params);
  ASSERT_TRUE(to.ok());
  ASSERT_TRUE(to->copy_rows("seen", 7, 2, from, "seen", 1).ok());
  EXPECT_EQ(state(*to, "seen", 6, 3, 3), (std::vector<float>{0, 0, 0, 4, 5, 6, 0, 0, 0}));
  refused(to->copy_rows("seen", 8, 2, from, "seen", 0), Code::invalid, "'seen' with 9 rows");
  refused(to->copy_rows("seen", 0, 1, from, "count", 0), Code::invalid, "differ in size");
}

TEST_P(SessionTest, RowsAreCopiedWithinOneSession) {
  Session session = open();
  ASSERT_TRUE(run(session, 2, 0).ok());
  ASSERT_TRUE(session.copy_rows("seen", 3, 1, session, "seen", 0).ok());
  EXPECT_EQ(state(session, "seen", 3, 1, 3), (std::vector<float>{4, 5, 6}));
}

TEST_P(SessionTest, RowsAreCopiedBetweenDevices) {
  Session here = open();
  ASSERT_TRUE(run(here, 2, 1).ok());
  const auto device = open_device(std::string_view(GetParam()) == "cpu" ? "mean" : "cpu");
  ASSERT_TRUE(device.ok());
  Options options;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  options.cache_dir = "none";
  auto exe = compile(std::move(*small_graph()), *device, options);
  ASSERT_TRUE(exe.ok());
  Params params = exe->params();
  ASSERT_TRUE(params.set("w", view<float>(w_, {2, 3})).ok());
  auto there = exe->open(params);
  ASSERT_TRUE(there.ok());
  ASSERT_TRUE(there->copy_rows("seen", 0, 1, here, "seen", 1).ok());
  EXPECT_EQ(state(*there, "seen", 0, 1, 3), (std::vector<float>{4, 5, 6}));
}

TEST_P(SessionTest, SnapshotsRestore) {
  Session session = open(), other = open();
  ASSERT_TRUE(run(session, 2, 1).ok());
  const auto snapshot = session.snapshot();
  ASSERT_TRUE(snapshot.ok());
  ASSERT_TRUE(run(session, 8, 1).ok());
  ASSERT_TRUE(session.restore(*snapshot).ok());
  ASSERT_TRUE(other.restore(*snapshot).ok());
  for (Session* s : {&session, &other}) {
    EXPECT_EQ(state(*s, "seen", 1, 1, 3), (std::vector<float>{4, 5, 6}));
    EXPECT_EQ(state(*s, "count", 0, 1, 1), std::vector<float>{1});
  }
  StateSnapshot torn = *snapshot;
  torn.pop_back();
  refused(session.restore(torn), Code::invalid, "of another program");
}

TEST_P(SessionTest, ClonesGoTheirOwnWay) {
  Session session = open();
  ASSERT_TRUE(run(session, 2, 1).ok());
  auto clone = session.clone();
  ASSERT_TRUE(clone.ok()) << clone.error().message();
  ASSERT_TRUE(run(*clone, 3, 2).ok());
  EXPECT_EQ(state(*clone, "seen", 1, 2, 3), (std::vector<float>{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(state(session, "seen", 1, 2, 3), (std::vector<float>{4, 5, 6, 0, 0, 0}));
  EXPECT_EQ(state(*clone, "count", 0, 1, 1), std::vector<float>{2});
  EXPECT_EQ(clone->memory().weights, session.memory().weights);
}

TEST_P(SessionTest, MapsWhereMemoryIsShared) {
  Session session = open();
  ASSERT_TRUE(run(session, 2, 1).ok());
  const auto mapped = session.map("seen");
  if (std::string_view(GetParam()) != "cpu") {
    ASSERT_FALSE(mapped.ok());
    EXPECT_EQ(mapped.error().code, Code::unsupported);
    return;
  }
  ASSERT_TRUE(mapped.ok());
  float first = 0;
  std::memcpy(&first, mapped->data() + 12, sizeof first);
  EXPECT_EQ(first, 4);
}

// ---- cancellation and profile

TEST_P(SessionTest, ACancelledRunEndsBetweenStepsAndTheNextOneRuns) {
  Session session = open();
  const std::vector<int32_t> row = {0};
  const std::vector<IoBinding> io = {x(2), at(row)};
  CancelToken token;
  token.cancel();
  const Status cancelled = session.run(io, {}, &token);
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code, Code::cancelled);
  token.reset();
  EXPECT_TRUE(session.run(io, {}, &token).ok());
}

// Long enough that the flag is up before the last step.
TEST_P(SessionTest, ARunIsCancelledInItsMidst) {
  Builder b;
  const Value w = b.param("w", DType::f32, {256, 256});
  Value v = b.input("x", DType::f32, {256, 256});
  for (int i = 0; i < 64; ++i) v = tanh(b, linear(b, v, w));
  b.output("y", v);
  const Value ends = b.state("ends", DType::f32, {256, 256});
  b.update("ends", add(b, mul(b, ends, 0), v));
  Options options;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  options.cache_dir = "none";
  auto exe = compile(std::move(*b.finish()), *device_, options);
  ASSERT_TRUE(exe.ok()) << exe.error().message();
  Params params = exe->params();
  const std::vector<float> ones(256 * 256, 1);
  ASSERT_TRUE(params.set("w", view<float>(ones, {256, 256})).ok());
  auto session = exe->open(params);
  ASSERT_TRUE(session.ok()) << session.error().message();
  CancelToken token;
  const IoBinding x = {*exe->io("x"), view<float>(ones, {256, 256})};
  const auto ticket = session->submit(std::span(&x, 1), {}, &token);
  ASSERT_TRUE(ticket.ok());
  token.cancel();
  refused(session->wait(*ticket), Code::cancelled, "cancelled");
  EXPECT_EQ(state(*session, "ends", 0, 1, 256), std::vector<float>(256)) << "the last step did not run";
  token.reset();
  ASSERT_TRUE(session->run(std::span(&x, 1), {}, &token).ok());
  EXPECT_EQ(state(*session, "ends", 0, 1, 256), std::vector<float>(256, 1));
}

TEST_P(SessionTest, ProfilesEachStep) {
  Session session = open();
  ASSERT_TRUE(run(session, 8, 0).ok());
  EXPECT_TRUE(session.profile().empty());
  session.set_profiling(true);
  std::vector<float> y;
  ASSERT_TRUE(run(session, 8, 0, &y).ok());
  EXPECT_EQ(y[14], 22) << "a profiled run gives the same numbers";
  const std::vector<StepProfile> profile = session.profile();
  EXPECT_EQ(profile.size(), exe_->explain().ranges.back().steps.size());
  double bytes = 0, flop = 0;
  for (const StepProfile& step : profile) {
    EXPECT_FALSE(step.label.empty());
    EXPECT_GE(step.seconds, 0);
    bytes += step.bytes, flop += step.flop;
  }
  EXPECT_GT(bytes, 0);
  EXPECT_GT(flop, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, SessionTest, testing::Values("cpu", "mean", test::kOpencl, test::kVulkan));

}  // namespace
}  // namespace tern
