#include "unit/kernels/harness.h"

namespace tern::test {

namespace {

using Kind = ScalarExpr::Kind;

// x [a, b, c] reduced over its middle axis or its last, as extents kept..., reduced.
template <class T>
void check(const Place& place, ReduceKind kind, bool last, DType dtype, std::vector<T> x, int64_t a, int64_t b,
           int64_t c, bool with_epilogue) {
  SCOPED_TRACE(std::string(place.name) + " kind " + std::to_string(static_cast<int>(kind)) +
               (last ? " last" : " middle"));
  Case k;
  k.p.family = Family::reduce;
  k.p.desc = ReduceDesc{kind, 1};
  const Dim t = k.symbol("A", 1, 16, a);
  k.p.extent = last ? std::vector<Dim>{t, b, c} : std::vector<Dim>{t, c, b};
  const bool logic = kind == ReduceKind::any || kind == ReduceKind::all;
  const auto in = k.add(Role::x, {dtype, {t, b, c}}),
             out = k.add(Role::out, {logic ? DType::u32 : dtype, {t, last ? b : c}}, Access::write);
  k.p.prologue.loads = {{in, {0, last ? std::vector<Dim>{b * c, c, 1} : std::vector<Dim>{b * c, 1, c}}}};
  k.p.prologue.code = {{Kind::load, ScalarOp::add, dtype, 0}};
  if (with_epilogue) {
    k.p.parts[0].epilogue.consts = {{2.0, 2}};
    k.p.parts[0].epilogue.code = {{Kind::accumulator, ScalarOp::add, dtype, 0},
                                  {Kind::constant, ScalarOp::add, dtype, 0},
                                  {Kind::op, ScalarOp::mul, dtype, 0, 1}};
  }
  k.output(out, with_epilogue ? 2 : 0);
  Bid bid;
  ASSERT_TRUE(k.choose("reduce", place.caps, &bid)) << k.error;
  k.set(in, x);
  k.run("reduce", place.caps, bid, place.interpret);
  if (testing::Test::HasFatalFailure()) return;
  const auto y = k.get<T>(out);
  const auto bits = k.get<uint32_t>(out);
  const int64_t keep = last ? b : c, steps = last ? c : b;
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t j = 0; j < keep; ++j) {
      double want = kind == ReduceKind::prod  ? 1
                    : kind == ReduceKind::max ? -1e300
                    : kind == ReduceKind::min ? 1e300
                                              : kind == ReduceKind::all;
      for (int64_t s = 0; s < steps; ++s) {
        const double v = static_cast<double>(x[static_cast<size_t>(last ? (i * b + j) * c + s : (i * b + s) * c + j)]);
        if (kind == ReduceKind::sum) want += v;
        if (kind == ReduceKind::prod) want *= v;
        if (kind == ReduceKind::max) want = std::isnan(want) || std::isnan(v) ? NAN : std::max(want, v);
        if (kind == ReduceKind::min) want = std::isnan(want) || std::isnan(v) ? NAN : std::min(want, v);
        if (kind == ReduceKind::any) want = want != 0 || v != 0;
        if (kind == ReduceKind::all) want = want != 0 && v != 0;
      }
      const auto at = static_cast<size_t>(i * keep + j);
      if (logic) {
        ASSERT_EQ(bits[at], want);
      } else if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(static_cast<double>(y[at])));
      } else {
        ASSERT_NEAR(static_cast<double>(y[at]), with_epilogue ? 2 * want : want, 1e-4);
      }
    }
  }
}

}  // namespace

TEST(Reduce, FloatsAndIntegersAlongEveryAxis) {
  for (const Place& place : places()) {
    for (bool last : {true, false}) {
      Random r(61);
      auto x = r.reals(3 * 20 * 70);
      for (ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min})
        check(place, kind, last, DType::f32, x, 3, 20, 70, kind == ReduceKind::sum);
      x[17] = NAN;
      check(place, ReduceKind::max, last, DType::f32, x, 3, 20, 70, false);
      std::vector<float> near(2 * 5 * 33);
      for (float& v : near) v = 1 + r.real() * 0.1f;
      check(place, ReduceKind::prod, last, DType::f32, near, 2, 5, 33, false);
      std::vector<int32_t> ints(2 * 9 * 31);
      for (auto& v : ints) v = static_cast<int32_t>(r.below(2000)) - 1000;
      check(place, ReduceKind::sum, last, DType::i32, ints, 2, 9, 31, false);
      check(place, ReduceKind::min, last, DType::i32, ints, 2, 9, 31, false);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Reduce, Logic) {
  for (const Place& place : places()) {
    for (bool last : {true, false}) {
      std::vector<uint8_t> flags(2 * 12 * 20, 0);
      flags[5] = flags[250] = 1;
      check(place, ReduceKind::any, last, DType::boolean, flags, 2, 12, 20, false);
      std::fill(flags.begin(), flags.end(), uint8_t{1});
      flags[30] = 0;
      check(place, ReduceKind::all, last, DType::boolean, flags, 2, 12, 20, false);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace tern::test
