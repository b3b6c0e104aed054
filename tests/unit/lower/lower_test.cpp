#include "lower/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "compare.h"
#include "graphs.h"
#include "machine.h"
#include "tern/ops/attention.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/norm.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

using test::expect_same;
using test::passed;

template <class T>
size_t count_steps(const Program& p, uint32_t list = 0) {
  return static_cast<size_t>(std::count_if(p.lists[list].begin(), p.lists[list].end(),
                                           [](const Step& s) { return std::holds_alternative<T>(s.what); }));
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Lower, SmallGraphsComputeWhatTheySay) {
  for (const int64_t n : {1, 3, 16}) {
    expect_same(test::mlp(), {{"B", n}}, 1);
    expect_same(test::reductions(), {{"B", n}}, 2);
    expect_same(test::concat_pad(), {{"B", n}}, 3);
    expect_same(test::negative_steps(), {{"B", std::max<int64_t>(n, 2)}}, 4);
  }
  expect_same(test::states(), {}, 5);
}

TEST(Lower, DenseAttentionInMatrixOrder) {
  Builder b;
  const Dim n = b.symbol("B", 1, 3), t = b.symbol("T", 1, 8);
  const Value q = b.input("q", DType::f32, {n, t, 4, 8}), k = b.input("k", DType::f32, {n, t, 2, 8}),
              v = b.input("v", DType::f32, {n, t, 2, 6});
  b.output("y", dense_attention(b, q, k, v, {.scale = 0.35, .window = 3, .soft_cap = 5}));
  b.output("best", argmax(b, q, 1, true));
  const Graph g = passed(b);
  for (const int64_t size : {1, 5, 8}) expect_same(g, {{"B", 2}, {"T", size}}, 6);
}

TEST(Lower, FewBindingsSplitRegions) {
  Builder b;
  Value sum;
  for (int i = 0; i < 20; ++i) {
    const Value x = b.input("x" + std::to_string(i), DType::f32, {5});
    sum = sum.valid() ? add(b, sum, mul(b, x, x)) : x;
  }
  b.output("y", sum);
  const Graph g = passed(b);
  Caps caps;
  caps.max_bindings = 4;
  expect_same(g, {}, 7, {}, caps);
  caps.max_bindings = 64;
  const auto p = lower(g, test::plain_candidates(), caps, {});
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->lists[0].size(), 1u);
}

TEST(Lower, RangesShareBuffersAndNumbers) {
  const Graph g = test::mlp();
  LowerOptions options;
  const uint32_t batch = *g.dims->find_symbol("B");
  options.ranges = {{{batch, 1, 1}}, {{batch, 1, 8}}};
  const auto p = lower(g, test::plain_candidates(), {}, options);
  ASSERT_TRUE(p.ok()) << p.error().message();
  ASSERT_EQ(p->ranges.size(), 3u);
  EXPECT_TRUE(p->ranges[2].when.empty());
  for (size_t r = 1; r < 3; ++r) {
    ASSERT_EQ(p->lists[r].size(), p->lists[0].size());
    for (size_t s = 0; s < p->lists[r].size(); ++s) {
      for (size_t u = 0; u < p->lists[r][s].uses.size(); ++u)
        EXPECT_EQ(p->lists[r][s].uses[u].ref.id, p->lists[0][s].uses[u].ref.id);
    }
  }
  EXPECT_TRUE(p->lists[0][0].uses[0].ref.bytes.constant().has_value());  // one row: sizes are known
  for (const int64_t n : {1, 5, 64}) expect_same(g, {{"B", n}}, 9, options);
}

TEST(Lower, EqualLayersShareProblemsAndKernels) {
  const Graph two = test::llama(2), many = test::llama(12);
  const auto a = lower(two, test::plain_candidates(), {}, {}), b = lower(many, test::plain_candidates(), {}, {});
  ASSERT_TRUE(a.ok()) << a.error().message();
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(a->kernels.size(), b->kernels.size());
  EXPECT_EQ(a->problems.size(), b->problems.size());
  EXPECT_EQ(a->choices.size(), a->problems.size());
  EXPECT_GT(b->lists[0].size(), a->lists[0].size());
  test::asked();
  (void)lower(two, test::plain_candidates(), {}, {});
  const int once = test::asked();
  (void)lower(many, test::plain_candidates(), {}, {});
  EXPECT_LE(test::asked(), once + 2);
}

TEST(Lower, CachesAreWrittenInPlace) {
  const auto p = lower(test::llama(2), test::plain_candidates(), {}, {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_EQ(count_steps<Copy>(*p), 0u);
  for (const Step& s : p->lists[0]) {
    for (const Use& u : s.uses) {
      if (u.access == Access::read || p->buffers[u.ref.id].origin != Origin::state) continue;
      EXPECT_EQ(u.access, Access::update) << s.label;
    }
  }
}

TEST(Lower, ResidentStateNamesBothUses) {
  Builder b;
  const Value s = b.state("cache", DType::f32, {8, 4}), i = b.input("i", DType::i32, {2}),
              x = b.input("x", DType::f32, {2, 4});
  b.scope("write");
  const Value next = store_rows(b, s, i, x);
  b.scope("late");
  // Reads the old cache at places that only the new one knows: a sum of the new one is needed first.
  const Value where = cast(b, reduce_sum(b, next, {1}), DType::i32);
  b.output("y", gather(b, s, where));
  b.update("cache", next);
  Graph g = passed(b);
  const auto p = lower(g, test::plain_candidates(), {}, {});
  ASSERT_FALSE(p.ok());
  EXPECT_TRUE(has(p.error().text, "cache") && has(p.error().text, "late") && has(p.error().text, "write"))
      << p.error().message();
  ASSERT_TRUE(g.set_resident("cache", false).ok());
  expect_same(g, {}, 11);
}

TEST(Lower, StoresThatCannotBeInPlaceCopyFirst) {
  Builder b;
  const Value x = b.input("x", DType::f32, {6, 4}), i = b.input("i", DType::i32, {2}),
              rows = b.input("rows", DType::f32, {2, 4});
  const Value y = mul(b, x, 2);
  b.output("before", y);
  b.output("a", store_rows(b, y, i, rows));
  b.output("b", store_rows(b, x, i, neg(b, rows)));
  expect_same(passed(b), {}, 12);
}

TEST(Lower, ParamsOnlyWorkIsPrepared) {
  Builder b;
  const Value x = b.input("x", DType::f32, {4, 6});
  const Value w = exp(b, transpose(b, b.param("w", DType::f32, {6, 5}), {1, 0}));
  b.output("y", linear(b, x, w));
  b.output("e", add(b, b.param("v", DType::f32, {3}), 1));  // an output is made in every run
  const Graph g = passed(b);
  const auto p = lower(g, test::plain_candidates(), {}, {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  ASSERT_NE(p->prepare_list, kNone);
  EXPECT_EQ(p->lists[p->prepare_list].size(), 1u);
  EXPECT_EQ(p->lists[0].size(), 2u);
  expect_same(g, {}, 13);
}

TEST(Lower, TapsLeaveBesideTheOutputs) {
  Builder b;
  const Value x = b.input("x", DType::f32, {4});
  const Value y = exp(b, x), z = add(b, y, 1);
  b.output("z", z);
  Graph g = passed(b);
  LowerOptions options;
  options.taps = {{"inner", g.at(g.outputs()[0].value).in[0]}};
  const auto p = lower(g, test::plain_candidates(), {}, options);
  ASSERT_TRUE(p.ok());
  ASSERT_EQ(p->io.io.size(), 3u);
  EXPECT_TRUE(p->io.io[2].optional_read);
  EXPECT_FALSE(p->io.io[1].optional_read);
  test::Machine m(*p);
  ASSERT_TRUE(m.set("x", RefTensor{DType::f32, {4}, {0, 1, 2, 3}, {}}).ok());
  ASSERT_TRUE(m.run({}).ok());
  EXPECT_NEAR(m.get("inner", {})->f[1], 2.718281828, 1e-6);
}

size_t with_layout(const Program& p, const LayoutDef& def) {
  return static_cast<size_t>(
      std::count_if(p.buffers.begin(), p.buffers.end(), [&](const BufferDef& b) { return b.layout.def == &def; }));
}
size_t of_family(const Program& p, Family family) {
  return static_cast<size_t>(std::count_if(p.lists[0].begin(), p.lists[0].end(), [&](const Step& s) {
    return s.problem != kNone && p.problems[s.problem].family == family;
  }));
}

TEST(Lower, ProducersWriteBlocksBesideFloats) {
  Builder b;
  const Value x = b.input("x", DType::f32, {4, 64});
  const Value h = rms_norm(b, x, b.param("n", DType::f32, {64}), 1e-5);
  const Value y = linear(b, h, b.param("w", DType::f32, {32, 64}));
  b.output("y", y);
  b.output("h", h);
  const Graph g = passed(b);
  const auto p = lower(g, test::int8_candidates(), {}, {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_EQ(of_family(*p, Family::convert), 0u);
  EXPECT_EQ(with_layout(*p, kActInt8), 1u);
  test::Machine m(*p);
  RefTensor in{DType::f32, {4, 64}, std::vector<double>(256), {}},
      w{DType::f32, {32, 64}, std::vector<double>(2048), {}}, one{DType::f32, {64}, std::vector<double>(64, 1), {}};
  for (size_t n = 0; n < in.f.size(); ++n) in.f[n] = std::sin(static_cast<double>(n));
  for (size_t n = 0; n < w.f.size(); ++n) w.f[n] = std::cos(static_cast<double>(n));
  ASSERT_TRUE(m.set("x", in).ok() && m.set("w", w).ok() && m.set("n", one).ok() && m.run({}).ok());
  const RefTensor got_h = *m.get("h", {}), got = *m.get("y", {});
  for (size_t r = 0; r < 4; ++r) {
    for (size_t c = 0; c < 32; ++c) {
      double sum = 0;
      for (size_t k = 0; k < 64; ++k) sum += got_h.f[r * 64 + k] * w.f[c * 64 + k];
      ASSERT_NEAR(got.f[r * 32 + c], sum, 0.2);
    }
  }
}

TEST(Lower, OneConvertStepServesAllReaders) {
  Builder b;
  const Value x = b.input("x", DType::f32, {4, 64});
  b.output("y", linear(b, x, b.param("w", DType::f32, {32, 64})));
  b.output("z", exp(b, linear(b, add(b, x, 0), b.param("v", DType::f32, {16, 64}))));
  LowerOptions options;
  auto p = lower(passed(b), test::int8_candidates(), {}, options);
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_LE(of_family(*p, Family::convert), 2u);
  EXPECT_GE(of_family(*p, Family::convert), 1u);
  Builder c;
  const Value u = c.input("x", DType::f32, {4, 64});
  c.output("y", linear(c, u, c.param("w", DType::f32, {32, 64})));
  options.policy.precise = true;
  p = lower(passed(c), test::int8_candidates(), {}, options);
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(of_family(*p, Family::convert), 0u);
  ASSERT_EQ(p->choices.size(), 1u);
  ASSERT_EQ(p->choices[0].refusals.size(), 1u);
  EXPECT_EQ(p->choices[0].refusals[0].second, "the policy is precise");
}

// A candidate that reads a table window by window.
OrRefuse<std::vector<Bid>> windowed_bid(const Problem& p, const Asked& asked) {
  Bid bid;
  bid.layouts.assign(p.operands.size(), Layout{&kDense, {}});
  TERN_ACCEPT(bid.launches, window_count(p.operands[0], bid.layouts[0], p.bounds, asked));
  return std::vector<Bid>{bid};
}
Status windowed_build(const Problem& p, const Bid& bid, BuildCtx& ctx) {
  return for_windows(p, 0, bid.layouts[0], ctx, [&](int64_t first, int64_t units, Use use) {
    KernelDef def;
    def.name = "window";
    Step step;
    step.uses = {use, ctx.whole(1), ctx.whole(2), ctx.scratch(64)};
    def.sig = {{Access::read, Access::read, Access::write, Access::write}, 2};
    step.what = Launch{ctx.kernel(std::move(def)), 1, {first, units}};
    ctx.step(std::move(step));
    return ok();
  });
}

TEST(Lower, WindowsAreStepsOfOneProblem) {
  Builder b;
  b.output("y", embedding(b, b.param("table", DType::f32, {100, 16}), b.input("ids", DType::i32, {5})));
  static constexpr Candidate kWindowed[] = {{"windowed", Family::gather, windowed_bid, windowed_build}};
  Caps caps;
  caps.max_binding_bytes = 4096;
  const auto p = lower(passed(b), kWindowed, caps, {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  ASSERT_EQ(p->lists[0].size(), 2u);
  EXPECT_EQ(p->kernels.size(), 1u);
  for (size_t n = 0; n < 2; ++n) {
    const Step& s = p->lists[0][n];
    EXPECT_EQ(p->buffers[s.uses[0].ref.id].name, "table");
    EXPECT_EQ(s.uses[0].ref.offset, Dim(n == 0 ? 0 : 4096));
    EXPECT_EQ(s.uses[0].ref.bytes, Dim(n == 0 ? 4096 : 2304));
    EXPECT_EQ(s.uses[2].access, Access::write);
    EXPECT_EQ(s.phase, 0u);  // they write apart from each other
    EXPECT_EQ(p->buffers[s.uses[3].ref.id].origin, Origin::temp);
  }
  EXPECT_NE(p->lists[0][0].uses[3].ref.id, p->lists[0][1].uses[3].ref.id);
}

TEST(Lower, NobodyNamesAllRefusals) {
  Builder b;
  const Value x = b.input("x", DType::f32, {4, 50});
  b.scope("blk.7");
  b.output("y", linear(b, x, b.param("w", DType::f32, {32, 50})));
  const Graph g = passed(b);
  static const std::vector<Candidate> only = [] {
    std::vector<Candidate> out;
    for (const Candidate& c : test::int8_candidates()) {
      if (c.name != "paper") out.push_back(c);
    }
    return out;
  }();
  const auto p = lower(g, only, {}, {});
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.error().code, Code::unsupported);
  EXPECT_TRUE(has(p.error().text, "matmul") && has(p.error().text, "k = 50, wants a multiple of 32"))
      << p.error().message();
  EXPECT_TRUE(has(p.error().where, "blk.7")) << p.error().message();
}

TEST(Lower, IsFast) {
  const Graph g = test::llama(30);
  LowerOptions options;
  const uint32_t t = *g.dims->find_symbol("T"), l = *g.dims->find_symbol("L");
  options.ranges = {{{t, 1, 1}, {l, 0, 1}}, {{t, 1, 8}, {l, 0, 8}}};
  const std::clock_t start = std::clock();  // processor time: the machine may be shared
  const auto p = lower(g, test::plain_candidates(), {}, options);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_TRUE(p.ok()) << p.error().message();
  RecordProperty("milliseconds", static_cast<int>(seconds * 1e3));
  std::printf("30 layers, three ranges: %.1f ms, %zu steps a list, %zu problems\n", seconds * 1e3, p->lists[0].size(),
              p->problems.size());
  EXPECT_LT(seconds, 2.0);  // a bound that a loaded machine and a sanitizer keep
}

}  // namespace
}  // namespace tern
