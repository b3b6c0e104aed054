// Sizes known only in mid-run: what depends on them is run with their value, on devices whose memory the host sees and
// on others.
#include <numeric>
#include <random>

#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "unit/engine/harness.h"

namespace tern {
namespace {

using namespace test;
using Wholes = std::vector<int64_t>;

class LateSizes : public OnDevice {
 protected:
  // Zeros and numbers in no order, none a negative zero.
  static Floats sparse(int64_t n, unsigned seed) {
    std::mt19937 rng(seed);
    Floats v(static_cast<size_t>(n));
    for (float& f : v) f = rng() % 3 ? 0.f : static_cast<float>(rng() % 100 + 1);
    return v;
  }
  static Wholes hits(const Floats& x) {
    Wholes out;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] != 0) out.push_back(static_cast<int64_t>(i));
    }
    return out;
  }
};

TEST_P(LateSizes, NonzeroOfAnyLength) {
  Builder b;
  const Dim n = b.symbol("N", 0, 20000);
  const Value x = b.input("x", DType::f32, {n});
  b.output("i", nonzero(b, x));
  Session session = opened(b);
  EXPECT_FALSE(session.shape(id("i")).ok());
  for (const int64_t N : {1, 7, 64, 257, 0, 20000, 300, 7}) {
    for (const unsigned seed : {1u, 2u}) {
      const Floats in_x = N == 300 ? Floats(300, seed == 1 ? 0.f : 1.f) : sparse(N, seed);
      Wholes got(20000, -7);
      const Status run = session.run(
          std::vector<IoBinding>{in(id("x"), in_x, {N}), {id("i"), mutable_view(std::span(got), {20000, 1})}});
      ASSERT_TRUE(run.ok()) << run.error().message();
      const Wholes want = hits(in_x);
      const auto shape = session.shape(id("i"));
      ASSERT_TRUE(shape.ok());
      EXPECT_EQ(*shape, (Wholes{static_cast<int64_t>(want.size()), 1}));
      EXPECT_EQ(Wholes(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(want.size())), want);
      EXPECT_TRUE(std::all_of(got.begin() + static_cast<std::ptrdiff_t>(want.size()), got.end(),
                              [](int64_t v) { return v == -7; }));  // nothing is written past what came
    }
  }
}

// Two late sizes, of several axes, and what is computed over them: sums see what came and nothing behind it.
TEST_P(LateSizes, WhatFollowsSeesTheValue) {
  Builder b;
  const Dim n = b.symbol("N", 1, 40);
  const Value x = b.input("x", DType::f32, {n, 5}), y = b.input("y", DType::i32, {6}),
              w = b.param("w", DType::f32, {3, 5});
  const Value at = nonzero(b, x, DType::i32), where = nonzero(b, y, DType::i32);
  const Value rows = squeeze(b, slice(b, at, 1, 0, 1), 1);
  const Value picked = gather(b, x, rows);  // [hits, 5]
  b.output("at", at);
  b.output("sum", reduce_sum(b, picked, {0}));
  b.output("lin", linear(b, picked, w));
  b.output("count", shape_of(b, at, DType::i32));
  b.output("both", mul(b, size_of(b, where, DType::i32), size_of(b, at, DType::i32)));
  b.output("steps", iota(b, Shape{b.dim(where, 0)}, 0));
  Floats weight(15);
  for (size_t o = 0; o < 3; ++o) weight[o * 5 + o] = 2;
  Session session = opened(b, {{"w", {weight, {3, 5}}}});
  for (const int64_t N : {1, 13, 40, 2}) {
    const Floats in_x = sparse(5 * N, static_cast<unsigned>(N));
    const std::vector<int32_t> in_y = {0, 3, 0, -1, static_cast<int32_t>(N % 2), 0};
    const Wholes want = hits(in_x);
    const auto h = static_cast<int64_t>(want.size()), k = 2 + N % 2;
    std::vector<int32_t> at_got(400), count(2), both(1), steps(6, -1);
    Floats sum(5), out_y(600), want_sum(5);
    const Status run = session.run(std::vector<IoBinding>{in(id("x"), in_x, {N, 5}),
                                                          {id("y"), view(std::span(in_y), {6})},
                                                          {id("at"), mutable_view(std::span(at_got), {200, 2})},
                                                          out(id("sum"), sum, {5}),
                                                          out(id("lin"), out_y, {200, 3}),
                                                          {id("count"), mutable_view(std::span(count), {2})},
                                                          {id("both"), mutable_view(std::span(both), {})},
                                                          {id("steps"), mutable_view(std::span(steps), {6})}});
    ASSERT_TRUE(run.ok()) << run.error().message();
    for (int64_t i = 0; i < h; ++i) {
      const int64_t flat = want[static_cast<size_t>(i)], row = flat / 5;
      EXPECT_EQ(at_got[static_cast<size_t>(2 * i)], row);
      EXPECT_EQ(at_got[static_cast<size_t>(2 * i + 1)], flat % 5);
      for (int64_t c = 0; c < 5; ++c) want_sum[static_cast<size_t>(c)] += in_x[static_cast<size_t>(row * 5 + c)];
      for (int64_t o = 0; o < 3; ++o)
        EXPECT_EQ(out_y[static_cast<size_t>(3 * i + o)], 2 * in_x[static_cast<size_t>(row * 5 + o)]);
    }
    EXPECT_EQ(sum, want_sum);  // small whole numbers
    EXPECT_EQ(count, (std::vector<int32_t>{static_cast<int32_t>(h), 2}));
    EXPECT_EQ(both[0], k * 2 * h);
    std::vector<int32_t> want_steps(6, -1);
    std::iota(want_steps.begin(), want_steps.begin() + k, 0);
    EXPECT_EQ(steps, want_steps);
    EXPECT_EQ(*session.shape(id("steps")), Wholes{k});
  }
}

// A size that an input's contents give: no axis says it.
TEST_P(LateSizes, SizesByContents) {
  Builder b;
  const Value x = b.input("x", DType::f32, {12}), rows = b.input("rows", DType::i32, {});
  b.scope("head");
  const Dim r = late_size(b, rows, "rows", 1, 12);
  b.output("y", reduce_sum(b, reshape(b, x, Shape{r, -1}), {1}));
  Session session = opened(b);
  Floats in_x(12);
  std::iota(in_x.begin(), in_x.end(), 0.f);
  const auto run = [&](int32_t R, int64_t room) {
    const std::vector<int32_t> in_rows = {R};
    Floats y(static_cast<size_t>(room));
    const Status s = session.run(std::vector<IoBinding>{
        in(id("x"), in_x, {12}), {id("rows"), view(std::span(in_rows), {})}, out(id("y"), y, {room})});
    if (!s) return s.error().message();
    std::string text;
    for (int32_t i = 0; i < R; ++i) text += std::to_string(static_cast<int>(y[static_cast<size_t>(i)])) + " ";
    return text;
  };
  EXPECT_EQ(run(3, 12), "6 22 38 ");
  EXPECT_EQ(run(1, 1), "66 ");
  EXPECT_EQ(run(4, 3), "output 'y' has 4 elements in axis 0, the view 3");
  EXPECT_EQ(run(6, 12), "1 5 9 13 17 21 ");
  EXPECT_NE(run(5, 12).find("reshape: element count"), std::string::npos) << run(5, 12);
  EXPECT_NE(run(5, 12).find("rows = 5 by a step of the run"), std::string::npos) << run(5, 12);
  EXPECT_EQ(run(13, 12), "rows is 13 by step 'head', wants 1 to 12");
  EXPECT_EQ(run(0, 12), "rows is 0 by step 'head', wants 1 to 12");
  EXPECT_EQ(run(2, 2), "15 51 ");  // and the session goes on
  const std::vector<SymbolValue> given = {{"rows", 3}};
  const std::vector<int32_t> three = {3};
  const Status s =
      session.run(std::vector<IoBinding>{in(id("x"), in_x, {12}), {id("rows"), view(std::span(three), {})}}, given);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().message(), "the size rows is known in mid-run only; the caller cannot give it");
}

TEST_P(LateSizes, RangesAreTakenBefore) {
  Builder b;
  b.output("i", nonzero(b, b.input("x", DType::f32, {8})));
  Options options;
  options.ranges = {{{"nonzero", 0, 1}}};
  const auto exe = compiled(b, options);
  ASSERT_FALSE(exe.ok());
  EXPECT_EQ(exe.error().message(), "a range is taken before the late size nonzero is known");
}

// Steps of every part are in the profile, under the labels of the whole list.
TEST_P(LateSizes, ProfileCoversAllParts) {
  Builder b;
  const Value x = b.input("x", DType::f32, {64});
  b.scope("find");
  const Value at = nonzero(b, x);
  b.scope("use");
  b.output("s", reduce_sum(b, gather(b, x, squeeze(b, at, 1))));
  Session session = opened(b);
  session.set_profiling(true);
  const Floats in_x(64, 1.f);
  Floats s(1);
  ASSERT_EQ(code_of(session.run(std::vector<IoBinding>{in(id("x"), in_x, {64}), out(id("s"), s, {})})), "ok");
  EXPECT_EQ(s[0], 64.f);
  int before = 0, after = 0;
  for (const StepProfile& p : session.profile()) {
    before += p.label.starts_with("find");
    after += p.label.starts_with("use");
  }
  EXPECT_GT(before, 1);
  EXPECT_GT(after, 0);
}

// What parameters alone decide is prepared once, unless a size says which part of them is read.
TEST_P(LateSizes, PreparedWorkKnowsNoSizes) {
  Builder b;
  const Dim k = b.symbol("K", 0, 4);
  const Value w = b.param("w", DType::f32, {6}), x = b.input("x", DType::f32, {3});
  const Value sum = reduce_sum(b, slice(b, w, 0, k, b.dims().add(k, 2)));
  b.output("y", add(b, x, sum));
  Session session = opened(b, {{"w", {{1, 10, 100, 1000, 10000, 100000}, {6}}}});
  const Floats in_x = {0, 1, 2};
  float ten = 1;
  for (const int64_t K : {0, 1, 2, 3}) {
    Floats y(3);
    const std::vector<SymbolValue> symbols = {{"K", K}};
    ASSERT_EQ(code_of(session.run(std::vector<IoBinding>{in(id("x"), in_x, {3}), out(id("y"), y, {3})}, symbols)),
              "ok");
    EXPECT_EQ(y, (Floats{11 * ten, 11 * ten + 1, 11 * ten + 2}));
    ten *= 10;
  }
}

// Running sums: rows of every length about the width of a step, and along an inner axis.
TEST_P(LateSizes, RunningSums) {
  Builder b;
  const Dim n = b.symbol("N", 0, 1100);
  const Value x = b.input("x", DType::i32, {3, n}), f = b.input("f", DType::f32, {2, n, 2});
  b.output("y", cumsum(b, x, -1));
  b.output("g", cumsum(b, f, 1));
  Session session = opened(b);
  for (const int64_t N : {0, 1, 3, 4, 5, 63, 64, 65, 256, 257, 1100}) {
    std::vector<int32_t> in_x(static_cast<size_t>(3 * N)), y(in_x.size()), want(in_x.size());
    Floats in_f(static_cast<size_t>(4 * N)), g(in_f.size()), want_g(in_f.size());
    for (size_t i = 0; i < in_x.size(); ++i) in_x[i] = static_cast<int32_t>(i * 2654435761u);  // wraps
    for (size_t i = 0; i < in_f.size(); ++i) in_f[i] = static_cast<float>(i % 13) - 6;         // exact in any order
    for (int64_t r = 0; r < 3; ++r) {
      uint32_t sum = 0;
      for (int64_t i = 0; i < N; ++i) {
        const auto k = static_cast<size_t>(r * N + i);
        want[k] = static_cast<int32_t>(sum += static_cast<uint32_t>(in_x[k]));
      }
    }
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t i = 0; i < N; ++i) {
        for (int64_t c = 0; c < 2; ++c) {
          const auto k = static_cast<size_t>((r * N + i) * 2 + c);
          want_g[k] = in_f[k] + (i ? want_g[k - 2] : 0);
        }
      }
    }
    const Status run = session.run(std::vector<IoBinding>{{id("x"), view(std::span<const int32_t>(in_x), {3, N})},
                                                          in(id("f"), in_f, {2, N, 2}),
                                                          {id("y"), mutable_view(std::span(y), {3, N})},
                                                          out(id("g"), g, {2, N, 2})});
    ASSERT_TRUE(run.ok()) << run.error().message();
    EXPECT_EQ(y, want) << N;
    EXPECT_EQ(g, want_g) << N;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LateSizes, testing::Values("cpu", "mean"));

}  // namespace
}  // namespace tern
