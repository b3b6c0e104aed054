// Shapes as values: what exporters write around a reshape, sizes that leave as outputs, and what is refused at bind.
#include <numeric>

#include "graph/op.h"
#include "graph/reference.h"
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

class Shapes : public OnDevice {
 protected:
  static Value numbers(Builder& b, const Wholes& values) {
    RefTensor t = ref_zeros(DType::i64, {static_cast<int64_t>(values.size())});
    t.i = values;
    return b.constant(const_from(t));
  }
  // Shape -> Gather -> Unsqueeze, as ONNX exporters spell one axis of a shape.
  static Value axis(Builder& b, Value x, double at) {
    return expand_dims(b, gather(b, shape_of(b, x), b.constant(DType::i64, at)), 0);
  }
  static Floats counted(int64_t n) {
    Floats v(static_cast<size_t>(n));
    std::iota(v.begin(), v.end(), 0.f);
    return v;
  }
};

TEST_P(Shapes, FlattenAndUnflattenAtEveryBatchSize) {
  Builder b;
  const Dim batch = b.symbol("B", 1, 9), tokens = b.symbol("T", 1, 5);
  const Value x = b.input("x", DType::f32, {batch, tokens, 4}), w = b.param("w", DType::f32, {6, 4});
  // [B, T, 4] -> [B * T, 4] -> linear -> [B, T, 2, 3] -> [B, 2, T, 3] -> [B, 2, 3 * T] plus the mean of nothing but
  // ones.
  const Value rows = reshape(b, x, concat(b, {numbers(b, {-1}), axis(b, x, 2)}, 0));
  const Value y = linear(b, rows, w);
  const Value heads = reshape(b, y, concat(b, {axis(b, x, 0), axis(b, x, 1), numbers(b, {2, 3})}, 0));
  const Value swapped = transpose(b, heads, {0, 2, 1, 3});
  const Value last = mul(b, axis(b, x, 1), numbers(b, {3}));
  const Value flat = reshape(b, swapped, concat(b, {axis(b, x, 0), numbers(b, {2}), last}, 0));
  const Value ones = broadcast_to(b, b.constant(DType::f32, 1), shape_of(b, flat));
  b.output("y", add(b, flat, ones));
  std::string printed;
  Options options;
  options.on_pass = [&](std::string_view, const Graph& g) { printed = print(g); };
  // w takes feature f to 10 f of input feature f % 4.
  Floats weight(24);
  for (size_t f = 0; f < 6; ++f) weight[f * 4 + f % 4] = 10;
  auto exe = compiled(b, options);
  ASSERT_TRUE(exe.ok()) << exe.error().message();
  for (const char* gone : {"dims", "gather", "concat", "i64"})
    EXPECT_EQ(printed.find(gone), std::string::npos) << printed;
  Params params = exe->params();
  ASSERT_TRUE(params.set("w", view(std::span<const float>(weight), {6, 4})).ok());
  auto session = exe->open(params);
  ASSERT_TRUE(session.ok()) << session.error().message();
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{1, 1}, {9, 5}, {2, 3}, {7, 1}, {1, 5}, {2, 3}}) {
    const Floats in_x = counted(B * T * 4);
    Floats got(static_cast<size_t>(B * T * 6));
    const Status run = session->run(std::vector<IoBinding>{{*exe->io("x"), view(std::span(in_x), {B, T, 4})},
                                                           out(*exe->io("y"), got, {B, 2, 3 * T})});
    ASSERT_TRUE(run.ok()) << run.error().message();
    for (int64_t n = 0; n < B * T * 6; ++n) {
      const int64_t i = n / (6 * T), h = n / (3 * T) % 2, t = n / 3 % T, f = 3 * h + n % 3;
      const auto want = static_cast<float>(10 * ((i * T + t) * 4 + f % 4) + 1);
      ASSERT_EQ(got[static_cast<size_t>(n)], want) << B << " " << T << " at " << n;
    }
  }
}

// Sizes that leave: through memory, in both integer types, negative ones and beyond 32 bits.
TEST_P(Shapes, SizesAreOutputs) {
  Builder b;
  const Dim n = b.symbol("N", 0, 40000), m = b.symbol("M", 1, 1000000);
  const Value x = b.input("x", DType::f32, {n, 2});
  b.input("z", DType::u8, {m, 0});
  const Value s = shape_of(b, x), rows = gather(b, s, b.constant(DType::i64, 0));
  b.output("s", s);
  b.output("rows", rows);
  b.output("small", cast(b, s, DType::i32));
  b.output("minus", neg(b, concat(b, {s, expand_dims(b, size_of(b, x), 0)}, 0)));
  b.output("square", reshape(b, concat(b, {s, s}, 0), Shape{2, 2}));
  b.output("real", cast(b, size_of(b, x), DType::f32));
  const bool wide = std::string_view(GetParam()) != "mean";
  if (wide) b.output("large", mul(b, dim_value(b, m), mul(b, dim_value(b, m), -3.)));
  if (wide) b.output("mixed", sub(b, mul(b, dim_value(b, m), dim_value(b, m)), 5e9));
  if (wide) b.output("unsigned", mul(b, dim_value(b, m), 4000.));
  Session session = opened(b);
  for (const auto& [N, M] : {std::pair<int64_t, int64_t>{3, 1}, {0, 1000000}, {40000, 70000}, {1, 999999}}) {
    const Floats in_x(static_cast<size_t>(2 * N));
    Wholes shape(2), one(1), minus(3), square(4), large{1}, mixed{1}, uns{1};
    std::vector<int32_t> small(2);
    Floats real(1);
    std::vector<IoBinding> io = {{id("x"), view(std::span(in_x), {N, 2})},
                                 {id("z"), TensorView{DType::u8, {M, 0}, {}, nullptr}},
                                 {id("s"), mutable_view(std::span(shape), {2})},
                                 {id("rows"), mutable_view(std::span(one), {})},
                                 {id("small"), mutable_view(std::span(small), {2})},
                                 {id("minus"), mutable_view(std::span(minus), {3})},
                                 {id("square"), mutable_view(std::span(square), {2, 2})},
                                 out(id("real"), real, {})};
    if (wide) io.push_back({id("large"), mutable_view(std::span(large), {})});
    if (wide) io.push_back({id("mixed"), mutable_view(std::span(mixed), {})});
    if (wide) io.push_back({id("unsigned"), mutable_view(std::span(uns), {})});
    const Status run = session.run(io);
    ASSERT_TRUE(run.ok()) << run.error().message();
    EXPECT_EQ(shape, (Wholes{N, 2}));
    EXPECT_EQ(one, Wholes{N});
    EXPECT_EQ(small, (std::vector<int32_t>{static_cast<int32_t>(N), 2}));
    EXPECT_EQ(minus, (Wholes{-N, -2, -2 * N}));
    EXPECT_EQ(square, (Wholes{N, 2, N, 2}));
    EXPECT_EQ(real, Floats{static_cast<float>(2 * N)});
    EXPECT_EQ(large, Wholes{wide ? -3 * M * M : 1});
    EXPECT_EQ(mixed, Wholes{wide ? M * M - 5000000000 : 1});
    EXPECT_EQ(uns, Wholes{wide ? 4000 * M : 1});
  }
}

TEST_P(Shapes, SizesThatDoNotFitTheDeviceAreNamed) {
  if (std::string_view(GetParam()) != "mean") GTEST_SKIP() << "this device has 64-bit integers";
  Builder b;
  const Dim m = b.symbol("M", 1, 1000000);
  b.input("x", DType::f32, {m, 0});
  b.scope("head");
  b.output("large", dim_value(b, b.dims().mul(m, m)));
  const auto exe = compiled(b);
  ASSERT_FALSE(exe.ok());
  EXPECT_NE(exe.error().message().find("i64"), std::string::npos) << exe.error().message();
  EXPECT_NE(exe.error().message().find("head"), std::string::npos) << exe.error().message();
}

// What could not be proved is tested at bind, and the error names both inputs.
TEST_P(Shapes, GuardsNameBothInputs) {
  Builder b;
  const Dim n = b.symbol("N", 1, 8), m = b.symbol("M", 1, 8), k = b.symbol("K", 1, 8);
  const Value x = b.input("x", DType::f32, {n, 2}), y = b.input("y", DType::f32, {2, m});
  b.scope("both");
  b.output("sum", add(b, x, transpose(b, y, {1, 0})));
  b.output("cut", slice(b, x, 0, 0, k));
  b.output("two", reshape(b, x, Shape{k, 2, b.dims().floordiv(n, k)}));
  Session session = opened(b);
  const auto run = [&](int64_t N, int64_t M, int64_t K) {
    const Floats a = counted(2 * N), c = counted(2 * M);
    Floats sum(static_cast<size_t>(2 * N)), cut(static_cast<size_t>(2 * K)), two(static_cast<size_t>(2 * N));
    const std::vector<SymbolValue> symbols = {{"K", K}};
    const Status s = session.run(
        std::vector<IoBinding>{in(id("x"), a, {N, 2}), in(id("y"), c, {2, M}), out(id("sum"), sum, {N, 2}),
                               out(id("cut"), cut, {K, 2}), out(id("two"), two, {K, 2, K == 0 ? 0 : N / K})},
        symbols);
    if (s && N == 4 && sum[3] != 3.f + 5.f) return std::string("wrong numbers");
    return s ? std::string("ok") : s.error().message();
  };
  EXPECT_EQ(run(4, 4, 2), "ok");
  EXPECT_EQ(
      run(4, 3, 2),
      "broadcast: axis 0 (only a constant 1 is repeated): M = 3 is not N = 4; N = 4 by input 'x' axis 0, M = 3 by "
      "input 'y' axis 1 (both)");
  // An extent of 1 is no broadcast: the graph said N and M.
  EXPECT_NE(run(4, 1, 2).find("M = 1 is not N = 4"), std::string::npos) << run(4, 1, 2);
  EXPECT_NE(run(1, 4, 1).find("M = 4 is not N = 1"), std::string::npos) << run(1, 4, 1);
  EXPECT_NE(run(4, 4, 5).find("slice: axis 0, limit up to the extent"), std::string::npos) << run(4, 4, 5);
  EXPECT_NE(run(4, 4, 5).find("N = 4 by input 'x' axis 0, K = 5 by the caller"), std::string::npos) << run(4, 4, 5);
  EXPECT_NE(run(4, 4, 3).find("reshape: element count"), std::string::npos) << run(4, 4, 3);
  EXPECT_EQ(run(3, 3, 3), "ok");
}

// Products of negative extents are no sizes.
TEST_P(Shapes, ExtentsAreNotNegative) {
  Builder b;
  const Dim n = b.symbol("N", 1, 8), less = b.dims().sub(n, 3);
  const Value x = b.input("x", DType::f32, {b.dims().mul(less, less)});
  b.input("n", DType::f32, {n});
  b.output("y", reshape(b, x, Shape{less, less}));
  b.output("i", iota(b, {less}, 0));
  b.output("f", broadcast_to(b, b.constant(DType::f32, 2), Shape{less}));
  Session session = opened(b);
  for (const int64_t N : {5, 3, 2}) {
    const int64_t k = N - 3, side = std::max<int64_t>(k, 0);
    const Floats in_x = counted(k * k), in_n = counted(N);
    Floats y(static_cast<size_t>(k * k)), f(static_cast<size_t>(side));
    std::vector<int32_t> i(static_cast<size_t>(side));
    const Status run =
        session.run(std::vector<IoBinding>{{id("x"), view(std::span(in_x), {k * k})}, in(id("n"), in_n, {N})});
    EXPECT_EQ(code_of(run), k < 0 ? "invalid" : "ok");
    const std::string why = run.ok() ? "" : run.error().message();
    EXPECT_EQ(why.find("the extent is not negative") != std::string::npos, k < 0) << why;
  }
}

// Sizes that fall while a symbol grows, or rise and fall: memory is there for the largest that any of them takes.
TEST_P(Shapes, SizesMayFallWhileASymbolGrows) {
  using Make = Dim (*)(DimTable&, Dim);
  using Count = int64_t (*)(int64_t);
  const std::pair<Make, Count> sizes[] = {
      {[](DimTable& d, Dim n) { return d.sub(100, n); }, [](int64_t n) { return 100 - n; }},
      {[](DimTable& d, Dim n) { return d.floordiv(100, n); }, [](int64_t n) { return 100 / n; }},
      {[](DimTable& d, Dim n) { return d.mod(100, n); }, [](int64_t n) { return 100 % n; }},
      {[](DimTable& d, Dim n) { return d.mul(n, d.sub(100, n)); }, [](int64_t n) { return n * (100 - n); }}};
  for (const auto& [make, count] : sizes) {
    Builder b;
    const Dim n = b.symbol("N", 1, 100);
    const Value x = b.input("x", DType::f32, {n});
    const Value fall = cumsum(b, cumsum(b, iota(b, Shape{make(b.dims(), n)}, 0, DType::f32), 0), 0);
    b.output("s", reduce_sum(b, fall, {}));
    b.output("all", fall);
    b.output("t", reduce_sum(b, cumsum(b, cumsum(b, x, 0), 0), {}));
    Session session = opened(b);
    for (const int64_t size : {100, 99, 50, 10, 7, 2, 1}) {
      const int64_t length = count(size);
      const Floats ones(static_cast<size_t>(size), 1.f);
      Floats all(static_cast<size_t>(length), -1.f), s = {-1}, t = {-1};
      const Status ran = session.run(std::vector<IoBinding>{in(id("x"), ones, {size}),
                                                            {id("s"), mutable_view<float>(s, {})},
                                                            {id("t"), mutable_view<float>(t, {})},
                                                            {id("all"), mutable_view<float>(all, {length})}});
      ASSERT_TRUE(ran.ok()) << size << ": " << ran.error().message();
      double once = 0, twice = 0, sum = 0;
      for (int64_t i = 0; i < length; ++i) {
        once += static_cast<double>(i), twice += once, sum += twice;
        ASSERT_NEAR(all[static_cast<size_t>(i)], twice, 1e-4 * twice) << size << " at " << i;
      }
      EXPECT_NEAR(s[0], sum, 1e-3 * sum) << size;
      EXPECT_EQ(t[0], static_cast<float>(size * (size + 1) * (size + 2) / 6)) << size;
    }
  }
}

TEST_P(Shapes, TheRestBehindASymbol) {
  Builder b;
  const Dim n = b.symbol("N", 0, 100);
  const Value a = b.input("a", DType::f32, {n}), x = b.input("x", DType::f32, {100});
  b.output("y", cumsum(b, slice(b, x, 0, n, 100), 0));
  b.output("z", reduce_sum(b, a, {}));
  Session session = opened(b);
  const Floats ones(100, 1.f);
  for (const int64_t size : {100, 99, 50, 0}) {
    const Floats some(static_cast<size_t>(size), 1.f);
    Floats y(static_cast<size_t>(100 - size), -1.f);
    const Status ran = session.run(std::vector<IoBinding>{
        in(id("a"), some, {size}), in(id("x"), ones, {100}), {id("y"), mutable_view<float>(y, {100 - size})}});
    ASSERT_TRUE(ran.ok()) << size << ": " << ran.error().message();
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], static_cast<float>(i + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Shapes, testing::Values("cpu", "mean", test::kOpencl, test::kVulkan));

}  // namespace
}  // namespace tern
