#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tern/shape.h"

namespace tern {
namespace {

struct Dims : testing::Test {
  DimTable t;
  Dim T = *t.symbol({.name = "T", .min = 1, .max = 512});
  Dim past = *t.symbol({.name = "past", .min = 0, .max = 2048});
  Dim B = *t.symbol({.name = "B", .min = 1, .max = 8});
  Dim M = *t.symbol({.name = "M", .min = 8, .max = 64, .multiple = 8});
  Dim Z = *t.symbol({.name = "Z", .min = 0, .max = 100});
  Dim parse(std::string_view s) {
    auto d = t.parse(s);
    EXPECT_TRUE(d.ok()) << s << ": " << (d.ok() ? "" : d.error().message());
    return d.ok() ? *d : Dim(-777);
  }
};

TEST_F(Dims, EqualExpressionsHaveEqualIds) {
  EXPECT_EQ(parse("(T + past) * B"), parse("B*past + B*T"));
  EXPECT_EQ(parse("T - T"), Dim(0));
  EXPECT_EQ(parse("(T + 1)*(T - 1) - T*T"), Dim(-1));
  EXPECT_EQ(t.mul(T, 0), Dim(0));
  EXPECT_NE(T, past);
  EXPECT_EQ(parse("T + 3 - T"), Dim(3));
  EXPECT_TRUE(parse("T + 3 - T").constant().has_value());
}

TEST_F(Dims, ExactDivisionsCancel) {
  EXPECT_EQ(parse("floordiv(4*T, 4)"), T);
  EXPECT_EQ(parse("floordiv(4*T*B, 2*B)"), parse("2*T"));
  EXPECT_EQ(parse("floordiv(8*T + 3, 4)"), parse("2*T"));
  EXPECT_EQ(parse("floordiv(T*past + past + 2*T + 2, T + 1)"), parse("past + 2"));
  EXPECT_EQ(parse("floordiv(floordiv(T, 4), 2)"), parse("floordiv(T, 8)"));
  EXPECT_EQ(parse("floordiv(6*T + 5, 4)"), parse("T + floordiv(2*T + 5, 4)"));
  EXPECT_EQ(parse("ceildiv(4*T, 4)"), T);
  EXPECT_EQ(parse("4*floordiv(T, 4) + mod(T, 4)"), T);
  EXPECT_EQ(parse("mod(12*T, 4)"), Dim(0));
  EXPECT_EQ(parse("mod(T*B, B)"), Dim(0));
  EXPECT_EQ(parse("floordiv(Z, 101)"), Dim(0));
  EXPECT_EQ(parse("mod(Z, 101)"), Z);
  EXPECT_EQ(parse("floordiv(T*past, B*T)"), parse("floordiv(past, B)"));
  EXPECT_EQ(parse("floordiv(T*past, -B*T)"), parse("floordiv(-past, B)"));
  // A divisor that may be 0 does not cancel.
  EXPECT_NE(parse("floordiv(4*Z, Z)"), Dim(4));
}

TEST_F(Dims, MultiplesTakePart) {
  EXPECT_EQ(parse("8*floordiv(M, 8)"), M);
  EXPECT_EQ(parse("2*floordiv(M, 8)"), parse("floordiv(M, 4)"));
  EXPECT_EQ(parse("mod(M, 8)"), Dim(0));
  EXPECT_EQ(t.divisible(M, 8), true);
  EXPECT_EQ(t.divisible(M, 4), true);
  EXPECT_EQ(t.divisible(M, 16), std::nullopt);
  EXPECT_EQ(t.divisible(parse("M + 4"), 8), false);
  EXPECT_EQ(t.divisible(parse("M*T + 16*B"), 8), true);
  EXPECT_EQ(t.divisible(parse("max(M, 8*T)"), 8), true);
  EXPECT_EQ(t.divisible(T, 2), std::nullopt);
  EXPECT_EQ(t.divisible(Dim(12), 5), false);
  EXPECT_EQ(t.text(M), "M");
  EXPECT_EQ(t.text(parse("M*M")), "M*M");
  EXPECT_EQ(t.as_symbol(M), t.find_symbol("M"));
  EXPECT_EQ(t.as_symbol(parse("2*M")), std::nullopt);
  EXPECT_FALSE(t.eval(M, std::vector<int64_t>{1, 1, 1, 12, 0}).ok());
}

TEST_F(Dims, BoundsDecideExtrema) {
  EXPECT_EQ(t.maximum(T, 1), T);
  EXPECT_EQ(t.maximum(Z, 1).is_expr(), true);
  EXPECT_NE(t.maximum(Z, 1), Z);
  EXPECT_EQ(t.minimum(T, 512), T);
  EXPECT_EQ(t.minimum(T, 0), Dim(0));
  EXPECT_EQ(t.maximum(parse("T + past"), past), parse("T + past"));
  EXPECT_EQ(t.maximum(t.maximum(T, past), T), t.maximum(past, T));
  EXPECT_EQ(parse("max(T, past, 700)"), parse("max(700, max(past, T))"));
}

TEST_F(Dims, Ranges) {
  using R = std::pair<int64_t, int64_t>;
  EXPECT_EQ(t.range(parse("past - 3*T + 5")), (R{0 - 1536 + 5, 2048 - 3 + 5}));
  EXPECT_EQ(t.range(M), (R{8, 64}));
  EXPECT_EQ(t.range(parse("T*T - T")), (R{0, 512 * 511}));
  EXPECT_EQ(t.range(parse("T - floordiv(T, 2)")), (R{1, 256}));
  EXPECT_EQ(t.range(parse("mod(past, 7)")), (R{0, 6}));
  EXPECT_EQ(t.range(parse("mod(past, B)")), (R{0, 7}));
  EXPECT_EQ(t.range(parse("T - M")), (R{-63, 504}));
  const Bounds one{{*t.find_symbol("T"), 1, 1}, {*t.find_symbol("past"), 4, 9}};
  EXPECT_EQ(t.range(parse("T*past + T"), one), (R{5, 10}));
  EXPECT_EQ(t.range(parse("floordiv(past, T)"), one), (R{4, 9}));
  const Dim big = *t.symbol({.name = "big", .min = 0, .max = INT64_MAX});
  EXPECT_EQ(t.range(t.mul(big, big)), (R{0, INT64_MAX}));
  EXPECT_EQ(t.range(t.sub(t.mul(big, 4), 7)), (R{-7, INT64_MAX}));
  EXPECT_EQ(t.range(t.mul(big, -3)), (R{INT64_MIN, 0}));
}

TEST_F(Dims, Equality) {
  EXPECT_EQ(t.equal(T, T), true);
  EXPECT_EQ(t.equal(T, past), std::nullopt);
  EXPECT_EQ(t.equal(T, 0), false);
  EXPECT_EQ(t.equal(T, 513), false);
  EXPECT_EQ(t.equal(T, 512), std::nullopt);
  EXPECT_EQ(t.equal(parse("2*T"), 7), false);
  EXPECT_EQ(t.equal(parse("T + past"), past), false);
  const Dim one = *t.symbol({.name = "one", .min = 1, .max = 1});
  EXPECT_EQ(t.equal(one, 1), true);
  EXPECT_EQ(t.divisible(parse("one*6"), 3), true);
}

TEST_F(Dims, Substitution) {
  const Bounds pins{{*t.find_symbol("T"), 1, 1}, {*t.find_symbol("past"), 0, 7}};
  EXPECT_EQ(t.substitute(parse("T*B + past"), pins), parse("B + past"));
  EXPECT_EQ(t.substitute(parse("max(T, Z)"), pins), parse("max(1, Z)"));
  EXPECT_EQ(t.substitute(parse("floordiv(T + 7, 8)"), pins), Dim(1));
  EXPECT_EQ(t.substitute(parse("mod(past, T)"), pins), Dim(0));
  EXPECT_EQ(t.substitute(M, {{*t.find_symbol("M"), 10, 17}}), Dim(16));  // the only multiple of 8 in there
  EXPECT_EQ(t.substitute(past, pins), past);
}

TEST_F(Dims, EvaluationIsChecked) {
  std::vector<int64_t> v{7, 100, 3, 16, 0};
  EXPECT_EQ(*t.eval(parse("T*B + floordiv(past, T) - M"), v), 21 + 14 - 16);
  EXPECT_EQ(*t.eval(parse("floordiv(-past, T)"), v), -15);
  EXPECT_EQ(*t.eval(parse("mod(-past, T)"), v), 5);
  EXPECT_EQ(t.eval(parse("mod(past, Z)"), v).error().code, Code::invalid);
  EXPECT_EQ(t.eval(parse("floordiv(5, 0)"), v).error().code, Code::invalid);
  EXPECT_EQ(t.eval(Z, std::vector<int64_t>{1}).error().text, "symbol Z has no value");
  const Dim huge = t.mul(Dim(INT64_MAX), Dim(2));  // a constant product that fits no constant
  EXPECT_TRUE(huge.is_expr());
  EXPECT_EQ(t.eval(huge, {}).error().code, Code::limit);
  EXPECT_EQ(t.range(huge).second, INT64_MAX);
  EXPECT_TRUE(t.add(INT64_MAX, 1).is_expr());
  EXPECT_EQ(parse(t.text(huge)), huge);
  v[0] = INT64_MAX;
  EXPECT_EQ(t.eval(parse("T*T"), v).error().code, Code::limit);
  EXPECT_EQ(t.eval(parse("T*T*T*T*T*T"), v).error().code, Code::limit);
  // The result is what counts, not the way to it.
  EXPECT_EQ(*t.eval(parse("T*B - 2*T"), v), INT64_MAX);
}

TEST_F(Dims, Text) {
  EXPECT_EQ(t.text(parse("T+past")), "past + T");
  EXPECT_EQ(t.text(parse("T*4*B")), "4*B*T");
  EXPECT_EQ(t.text(parse("3 - T*B + past")), "-B*T + past + 3");
  EXPECT_EQ(t.text(parse("floordiv(T, 2)")), "floordiv(T, 2)");
  EXPECT_EQ(t.text(Dim(-5)), "-5");
  EXPECT_EQ(t.text(parse("max(past, 5)")), "max(5, past)");
  // The order of the text does not follow the order of declaration.
  DimTable other;
  ASSERT_TRUE(other.symbol({.name = "past", .min = 0, .max = 2048}).ok());
  ASSERT_TRUE(other.symbol({.name = "T", .min = 1, .max = 512}).ok());
  EXPECT_EQ(other.text(*other.parse("max(T, past)*T + past*past")), t.text(parse("past*past + T*max(past, T)")));
}

TEST_F(Dims, BadTextIsRefusedWithAColumn) {
  for (const char* s : {"", "T +", "T T", "floordiv(T)", "unknown", "foo(T, 1)", "9223372036854775808", "(T", "T)", "*",
                        "max(T)", "#"}) {
    auto d = t.parse(s);
    ASSERT_FALSE(d.ok()) << s;
    EXPECT_EQ(d.error().where.substr(0, 7), "column ") << s;
  }
  EXPECT_FALSE(t.parse(std::string(100000, '(')).ok());
  EXPECT_FALSE(t.parse(std::string(100000, '-')).ok());
  EXPECT_EQ(*t.parse("-9223372036854775808"), Dim(INT64_MIN));
}

TEST_F(Dims, SymbolsAreChecked) {
  EXPECT_TRUE(t.symbol({.name = "T", .min = 1, .max = 512}).ok());
  EXPECT_FALSE(t.symbol({.name = "T", .min = 1, .max = 513}).ok());
  EXPECT_FALSE(t.symbol({.name = "max", .min = 1, .max = 2}).ok());
  EXPECT_FALSE(t.symbol({.name = "a b", .min = 1, .max = 2}).ok());
  EXPECT_FALSE(t.symbol({.name = "q", .min = 3, .max = 2}).ok());
  EXPECT_FALSE(t.symbol({.name = "q", .min = 9, .max = 15, .multiple = 8}).ok());
  EXPECT_FALSE(t.symbol({.name = "q", .min = 0, .max = 15, .multiple = 0}).ok());
  EXPECT_EQ(t.symbols_of(parse("floordiv(past, B) + T")), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(t.symbols_of(Dim(4)), (std::vector<uint32_t>{}));
}

// Random expressions, made twice: through the table and as plain arithmetic at random bindings.
class RandomDims {
 public:
  explicit RandomDims(uint64_t seed) : rng_(seed) {
    for (int s = 0; s < 3; ++s) {
      const int64_t multiple = pick(0, 2) ? 1 : pick(2, 6), lo = pick(-3, 2) * multiple,
                    hi = lo + pick(0, 9) * multiple;
      const std::string name(1, static_cast<char>('a' + s));
      Made m{*table.symbol({.name = name, .min = lo, .max = hi, .multiple = multiple}), {}};
      for (auto& b : bindings) {
        b.push_back(lo + pick(0, (hi - lo) / multiple) * multiple);
        m.value.push_back(b.back());
      }
      pool.push_back(std::move(m));
    }
  }

  struct Made {
    Dim dim;
    std::vector<std::optional<int64_t>> value;  // by binding; nullopt: division by zero on the way
    bool small() const {
      return std::all_of(value.begin(), value.end(), [](auto v) { return !v || std::abs(*v) < (1 << 24); });
    }
  };

  const Made& any() { return pool[static_cast<size_t>(pick(0, static_cast<int64_t>(pool.size()) - 1))]; }

  Made combine(const Made& x) {
    const int64_t c = pick(-6, 6), op = pick(0, 6);
    const Made y = pick(0, 1) ? Made{Dim(c), std::vector<std::optional<int64_t>>(bindings.size(), c)} : any();
    using Binary = Dim (DimTable::*)(Dim, Dim);
    static constexpr Binary kOps[] = {&DimTable::add, &DimTable::sub,     &DimTable::mul,    &DimTable::floordiv,
                                      &DimTable::mod, &DimTable::maximum, &DimTable::minimum};
    Made z{(table.*kOps[op])(x.dim, y.dim), {}};
    for (size_t b = 0; b < bindings.size(); ++b) {
      z.value.push_back(x.value[b] && y.value[b] ? plain(op, *x.value[b], *y.value[b]) : std::nullopt);
    }
    return z;
  }

  DimTable table;
  std::vector<std::vector<int64_t>> bindings = std::vector<std::vector<int64_t>>(24);
  std::vector<Made> pool;
  int proved_divisible = 0, proved_equal = 0;

 private:
  int64_t pick(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(rng_); }

  static std::optional<int64_t> plain(int64_t op, int64_t p, int64_t q) {
    const auto floor = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); };
    if ((op == 3 || op == 4) && q == 0) return std::nullopt;
    switch (op) {
      case 0: return p + q;
      case 1: return p - q;
      case 2: return p * q;
      case 3: return floor(p, q);
      case 4: return p - floor(p, q) * q;
      case 5: return std::max(p, q);
      default: return std::min(p, q);
    }
  }

  std::mt19937_64 rng_;
};

void check_proofs(RandomDims& r, const RandomDims::Made& x, const RandomDims::Made& z) {
  DimTable& t = r.table;
  const auto [lo, hi] = t.range(z.dim);
  for (size_t b = 0; b < r.bindings.size(); ++b) {
    const auto got = t.eval(z.dim, r.bindings[b]);
    if (!z.value[b]) continue;  // a simplified form may have lost the division
    ASSERT_TRUE(got.ok()) << t.text(z.dim) << ": " << got.error().message();
    ASSERT_EQ(*got, *z.value[b]) << t.text(z.dim);
    ASSERT_TRUE(lo <= *got && *got <= hi) << t.text(z.dim);
    for (int64_t by : {2, 3, 4}) {
      const auto d = t.divisible(z.dim, by);
      r.proved_divisible += d.has_value();
      ASSERT_TRUE(!d || *d == (*got % by == 0)) << t.text(z.dim) << " by " << by;
    }
    if (x.value[b]) {
      const auto e = t.equal(z.dim, x.dim);
      r.proved_equal += e.has_value();
      ASSERT_TRUE(!e || *e == (*got == *x.value[b])) << t.text(z.dim);
    }
    const Bounds pin{{1, r.bindings[b][1], r.bindings[b][1]}};
    ASSERT_EQ(*t.eval(t.substitute(z.dim, pin), r.bindings[b]), *got) << t.text(z.dim);
    const auto [pinned_lo, pinned_hi] = t.range(z.dim, pin);
    ASSERT_TRUE(pinned_lo <= *got && *got <= pinned_hi) << t.text(z.dim);
  }
  const auto again = t.parse(t.text(z.dim));
  ASSERT_TRUE(again.ok()) << t.text(z.dim);
  ASSERT_EQ(*again, z.dim) << t.text(z.dim) << " against " << t.text(*again);
}

TEST(DimsRandom, AgreeWithArithmetic) {
  int divisible = 0, equal = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    RandomDims r(seed);
    for (int i = 0; i < 14; ++i) {
      const RandomDims::Made x = r.any();
      RandomDims::Made z = r.combine(x);
      if (!z.small()) continue;
      ASSERT_NO_FATAL_FAILURE(check_proofs(r, x, z)) << "seed " << seed;
      r.pool.push_back(std::move(z));
    }
    divisible += r.proved_divisible;
    equal += r.proved_equal;
  }
  EXPECT_GT(divisible, 500);
  EXPECT_GT(equal, 500);
}

}  // namespace
}  // namespace tern
