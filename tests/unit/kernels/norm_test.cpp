#include <limits>

#include "unit/kernels/harness.h"

namespace tern::test {

TEST(Norm, EveryKindMatchesF64) {
  for (const Place& place : places()) {
    for (NormKind kind : {NormKind::rms, NormKind::layer, NormKind::softmax, NormKind::log_softmax}) {
      for (int64_t n : {576, 100, 7, 1}) {
        SCOPED_TRACE(std::string(place.name) + " kind " + std::to_string(static_cast<int>(kind)) + " n " +
                     std::to_string(n));
        Case c;
        const Dim t = c.symbol("T", 1, 8, 3);
        c.p.family = Family::norm;
        c.p.desc = NormDesc{kind, 1e-5};
        c.p.extent = {t, n};
        c.p.parts[0].n = n;
        const bool weighted = kind == NormKind::rms || kind == NormKind::layer;
        const auto x = c.add(Role::x, {DType::f32, {t, n}});
        const auto w = weighted ? c.add(Role::weight, {DType::f32, {n}}) : uint16_t{0};
        const auto b = kind == NormKind::layer ? c.add(Role::bias, {DType::f32, {n}}) : uint16_t{0};
        const auto y = c.add(Role::out, {DType::f32, {t, n}}, Access::write);
        c.output(y);
        const bool blocks = n % 32 == 0, fine = kind == NormKind::layer;
        const auto q = blocks ? c.add(Role::out, {DType::f32, {t, n}}, Access::write) : uint16_t{0};
        if (blocks) c.output(q), c.p.operands[q].layout = {&kActInt8, {fine}};
        Bid bid;
        ASSERT_TRUE(c.choose("norm", place.caps, &bid)) << c.error;
        Random r(7);
        const size_t N = static_cast<size_t>(n);
        auto xs = r.reals(3 * N), ws = r.reals(N), bs = r.reals(N);
        for (float& v : xs) v *= 4;
        c.set(x, xs);
        if (weighted) c.set(w, ws);
        if (kind == NormKind::layer) c.set(b, bs);
        c.run("norm", place.caps, bid, place.interpret);
        if (HasFatalFailure()) return;
        const auto got = c.get<float>(y);
        for (size_t i = 0; i < 3; ++i) {
          double sum = 0, squares = 0, most = -1e9, total = 0;
          for (size_t k = 0; k < N; ++k) {
            const double v = xs[i * N + k];
            sum += v, squares += v * v, most = std::max(most, v);
          }
          const double mean = sum / static_cast<double>(N);
          double variance = 0;
          for (size_t k = 0; k < N; ++k)
            variance += (xs[i * N + k] - mean) * (xs[i * N + k] - mean), total += std::exp(xs[i * N + k] - most);
          for (size_t k = 0; k < N; ++k) {
            const double v = xs[i * N + k];
            double want = 0;
            if (kind == NormKind::rms) want = v / std::sqrt(squares / static_cast<double>(N) + 1e-5) * ws[k];
            if (kind == NormKind::layer)
              want = (v - mean) / std::sqrt(variance / static_cast<double>(N) + 1e-5) * ws[k] + bs[k];
            if (kind == NormKind::softmax) want = std::exp(v - most) / total;
            if (kind == NormKind::log_softmax) want = v - most - std::log(total);
            ASSERT_NEAR(got[i * N + k], want, 2e-5) << i << " " << k;
          }
        }
        if (blocks) {
          ASSERT_EQ(c.memory[q], act_blocks(got, N, fine));
        }
      }
    }
  }
}

TEST(ArgReduce, TiesAndNaN) {
  for (const Place& place : places()) {
    for (bool largest : {true, false}) {
      SCOPED_TRACE(std::string(place.name) + (largest ? " largest" : " smallest"));
      Case c;
      const int64_t n = 700;
      c.p.family = Family::arg_reduce;
      c.p.desc = ArgReduceDesc{largest};
      c.p.extent = {4, n};
      const auto x = c.add(Role::x, {DType::f32, {4, n}}), y = c.add(Role::out, {DType::i32, {4}}, Access::write);
      c.output(y);
      Bid bid;
      ASSERT_TRUE(c.choose("arg_reduce", place.caps, &bid)) << c.error;
      Random r(8);
      auto xs = r.reals(4 * 700);
      xs[0 * 700 + 333] = largest ? 5.f : -5.f, xs[0 * 700 + 650] = xs[333];
      xs[1 * 700 + 100] = NAN, xs[1 * 700 + 90] = largest ? 9.f : -9.f, xs[1 * 700 + 99] = NAN;
      for (size_t i = 0; i < 700; ++i) xs[2 * 700 + i] = i % 2 ? 0.f : -0.f;
      for (size_t i = 0; i < 700; ++i) xs[3 * 700 + i] = largest ? -INFINITY : INFINITY;
      c.set(x, xs);
      c.run("arg_reduce", place.caps, bid, place.interpret);
      if (HasFatalFailure()) return;
      EXPECT_EQ(c.get<int32_t>(y), (std::vector<int32_t>{333, 99, 0, 0}));
    }
  }
}

}  // namespace tern::test
