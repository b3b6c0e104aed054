// The polynomials against the f64 library: error in units of the last place of the right result, over the whole range
// and in denormals.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "kir_test.h"

namespace tern::kir {
namespace {

constexpr uint32_t kLanes = 64;
const float kInf = std::numeric_limits<float>::infinity();

using Unary = V (*)(const V&);
using Binary = V (*)(const V&, const V&);

template <class T>
std::vector<T> evaluate(const Caps& caps, const std::function<V(const V&, const V&)>& f, std::vector<T> a,
                        std::vector<T> b) {
  const size_t count = a.size(), padded = (count + kLanes - 1) / kLanes * kLanes;
  a.resize(padded, T(1));
  b.resize(padded, T(1));
  std::vector<T> out(padded);
  const Type t = sizeof(T) == 8 ? f64 : f32;
  B k("math", kLanes, caps);
  Buffer in_a = buffer("a", t), in_b = buffer("b", t), y = buffer("y", t, Access::write);
  V i = group() * kLanes + lane();
  y.store(i, f(in_a[i], in_b[i]));
  auto kernel = k.finish();
  EXPECT_OK(kernel);
  if (!kernel) return out;
  EXPECT_OK(run_kernel(*kernel, {bytes_of(a), bytes_of(b), bytes_of(out)}, {}, static_cast<uint32_t>(padded / kLanes)));
  out.resize(count);
  return out;
}

double ulp_of(double exact, bool wide) {
  const int digits = wide ? 53 : 24, lowest = wide ? -1074 : -149;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::ldexp(1.0, std::max(exponent - digits, lowest));
}

// Worst error in ulp; infinite where one is NaN or infinite and the other is not.
template <class T>
double error_ulp(T got, long double exact) {
  const T rounded = static_cast<T>(exact);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) == std::isnan(got) ? 0 : kInf;
  if (std::isinf(rounded) || std::isinf(got)) {
    if (got == rounded) return 0;
    // A result just at the edge of the range may round either way.
    return std::fabs(static_cast<double>(std::isinf(got) ? exact : got)) >
                   0.9999999 * double(std::numeric_limits<T>::max())
               ? 1
               : kInf;
  }
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact)) /
         ulp_of(static_cast<double>(exact), sizeof(T) == 8);
}

template <class T>
std::vector<T> edge_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> v = {T(0),     T(1),        T(2),        T(0.5),  T(3),     T(10),   T(100),
                      T(0.625), T(0.999999), T(1.000001), T(88.7), T(103.9), T(1e10), T(1e30)};
  for (T x : {L::min(), L::denorm_min(), L::max(), L::infinity(), L::quiet_NaN(), L::epsilon(), L::min() * T(0.3)})
    v.push_back(x);
  for (size_t i = 0, n = v.size(); i < n; ++i) v.push_back(-v[i]);
  return v;
}

// Every exponent with random significands, uniform values in [-range, range], and the edges.
template <class T>
std::vector<T> samples(double range, int count, uint32_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<T> v = edge_values<T>();
  for (int i = 0; i < count; ++i) {
    if (i % 2) {
      v.push_back(static_cast<T>(std::uniform_real_distribution<double>(-range, range)(rng)));
    } else if constexpr (sizeof(T) == 4) {
      v.push_back(std::bit_cast<float>(static_cast<uint32_t>(rng())));
    } else {
      v.push_back(std::bit_cast<double>(rng()));
    }
  }
  return v;
}

struct Case {
  const char* name;
  Unary kir;
  long double (*exact)(long double);
  double range, ulp_fused, ulp_split;  // bounds with and without fma
};

const Case kCases[] = {
    {"exp", exp, std::exp, 90, 1.1, 1.6},
    {"exp2", exp2, std::exp2, 130, 1.1, 1.6},
    {"log", log, std::log, 3, 1.1, 1.6},
    {"log2", log2, std::log2, 3, 2.1, 2.6},
    {"sin", sin, std::sin, 200, 2.1, 2.1},
    {"cos", cos, std::cos, 200, 2.1, 2.1},
    {"tanh", tanh, std::tanh, 3, 1.6, 2.1},
    {"erf", erf, std::erf, 3, 1.6, 2.1},
    {"sigmoid", sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, 90, 2.6, 2.6},
};

class MathF32 : public testing::TestWithParam<Case> {};

void check_f32(const Case& c, bool fma, double bound) {
  Caps caps = test_caps();
  caps.fma = fma;
  const auto x = samples<float>(c.range, 40000, 7);
  const auto y = evaluate<float>(caps, [&](const V& a, const V&) { return c.kir(a); }, x, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    // 1 / (1 + exp) has no denormal results; all others round them once.
    const long double exact = c.exact(x[i]);
    if (c.kir == sigmoid && std::fabs(exact) < std::numeric_limits<float>::min()) continue;
    const double e = error_ulp(y[i], exact);
    worst = std::max(worst, e);
    ASSERT_LE(e, bound) << c.name << "(" << x[i] << ") = " << y[i] << ", exact " << static_cast<double>(exact);
  }
  testing::Test::RecordProperty(fma ? "ulp_fused" : "ulp_split", std::to_string(worst));
  printf("%-8s %s worst %.3f ulp\n", c.name, fma ? "fma  " : "nofma", worst);
}

TEST_P(MathF32, WithinBoundFused) { check_f32(GetParam(), true, GetParam().ulp_fused); }
TEST_P(MathF32, WithinBoundWithoutFma) { check_f32(GetParam(), false, GetParam().ulp_split); }

INSTANTIATE_TEST_SUITE_P(All, MathF32, testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param.name); });

struct WideCase {
  const char* name;
  Unary kir;
  long double (*exact)(long double);
  double range, ulp;
};
const WideCase kWideCases[] = {
    {"exp", exp, std::exp, 700, 1.1}, {"log", log, std::log, 3, 1.1},    {"sin", sin, std::sin, 1e5, 2.1},
    {"cos", cos, std::cos, 1e5, 2.1}, {"tanh", tanh, std::tanh, 3, 2.1}, {"erf", erf, std::erf, 4, 4.1},
};

TEST(MathF64, WithinBound) {
  for (const WideCase& c : kWideCases) {
    const auto x = samples<double>(c.range, 8000, 11);
    const auto y = evaluate<double>(test_caps(), [&](const V& a, const V&) { return c.kir(a); }, x, x);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double e = error_ulp(y[i], c.exact(x[i]));
      worst = std::max(worst, e);
      ASSERT_LE(e, c.ulp) << c.name << "(" << x[i] << ") = " << y[i] << ", exact " << double(c.exact(x[i]));
    }
    printf("%-8s f64   worst %.3f ulp\n", c.name, worst);
  }
}

template <class T>
void pairs(double range, int count, std::vector<T>* a, std::vector<T>* b) {
  const auto edge = edge_values<T>();
  for (T x : edge) {
    for (T y : edge) a->push_back(x), b->push_back(y);
  }
  const auto more = samples<T>(range, count, 3), other = samples<T>(range, count, 5);
  a->insert(a->end(), more.begin(), more.end());
  b->insert(b->end(), other.begin(), other.end());
  for (size_t i = 0; i < more.size(); ++i) {  // positive base, exponent so that the result is finite
    a->push_back(std::fabs(more[i])), b->push_back(static_cast<T>(static_cast<double>(i % 997) * 0.01 - 5));
  }
}

template <class T>
void check_binary(const char* name, Binary f, long double (*exact)(long double, long double), bool fma, double bound) {
  std::vector<T> a, b;
  pairs<T>(20, sizeof(T) == 8 ? 4000 : 20000, &a, &b);
  Caps caps = test_caps();
  caps.fma = fma;
  const auto y = evaluate<T>(caps, f, a, b);
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const long double want = exact(a[i], b[i]);
    const double e = error_ulp(y[i], want);
    worst = std::max(worst, e);
    ASSERT_LE(e, bound) << name << "(" << a[i] << ", " << b[i] << ") = " << y[i] << ", exact "
                        << static_cast<double>(want);
    if (want == 0) {
      EXPECT_EQ(std::signbit(y[i]), std::signbit(want)) << name << "(" << a[i] << ", " << b[i] << ")";
    }
  }
  printf("%-8s %s %s worst %.3f ulp\n", name, sizeof(T) == 8 ? "f64" : "f32", fma ? "fma  " : "nofma", worst);
}

long double c_pow(long double a, long double b) { return std::pow(a, b); }
long double c_atan2(long double a, long double b) { return std::atan2(a, b); }
long double c_fmod(long double a, long double b) { return std::fmod(a, b); }

TEST(MathBinary, Pow) {
  check_binary<float>("pow", pow, c_pow, true, 1.6);
  check_binary<float>("pow", pow, c_pow, false, 2.6);
  check_binary<double>("pow", pow, c_pow, true, 16);
}
TEST(MathBinary, Atan2) {
  check_binary<float>("atan2", atan2, c_atan2, true, 2.6);
  check_binary<float>("atan2", atan2, c_atan2, false, 2.6);
  check_binary<double>("atan2", atan2, c_atan2, true, 2.6);
}
TEST(MathBinary, FmodIsExact) {
  check_binary<float>("fmod", fmod, c_fmod, true, 0);
  check_binary<double>("fmod", fmod, c_fmod, true, 0);
}

TEST(Math, SinOfLargeArgumentsIsReduced) {
  // Values that a reduction in double would miss. sin(FLT_MAX) is from an arbitrary-precision library.
  const std::vector<float> x = {1e22f, 3.4028234664e38f, 131073.0f, 16367173.0f, 2.0f * 3.14159274f * 65536.0f};
  const auto s = evaluate<float>(test_caps(), [](const V& a, const V&) { return sin(a); }, x, x);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_LE(error_ulp(s[i], std::sin(static_cast<long double>(x[i]))), 1.6) << x[i];
  EXPECT_NEAR(s[1], -0.52187652, 1e-7);
}

TEST(Math, RoundingHelpers) {
  const std::vector<float> x = {0.5f,       1.5f,  2.5f, -0.5f,  -1.5f,   -2.5f, 0.49999997f,
                                8388609.0f, -0.0f, kInf, 1e-30f, -1e-30f, -3.7f, 3.7f};
  const auto r = evaluate<float>(test_caps(), [](const V& a, const V&) { return round(a); }, x, x);
  const auto c = evaluate<float>(test_caps(), [](const V& a, const V&) { return ceil(a); }, x, x);
  const auto t = evaluate<float>(test_caps(), [](const V& a, const V&) { return trunc(a); }, x, x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(r[i], std::nearbyint(x[i])) << x[i];
    EXPECT_EQ(c[i], std::ceil(x[i])) << x[i];
    EXPECT_EQ(t[i], std::trunc(x[i])) << x[i];
  }
}

}  // namespace
}  // namespace tern::kir
