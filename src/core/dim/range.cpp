// What can be proved about dims: intervals, divisibility, equality.
#include <algorithm>
#include <numeric>

#include "core/dim/impl.h"

namespace tern {
namespace dim {
namespace {

Wide clip(Wide v) { return v > INT64_MAX ? kInf : v < INT64_MIN ? -kInf : v; }
bool infinite(Wide v) { return v >= kInf || v <= -kInf; }

Wide times(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a < 0) == (b < 0) ? kInf : -kInf;
  return clip(a * b);  // both fit 64 bits
}

}  // namespace

Wide floor_div(Wide a, Wide b) {
  const Wide q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

// A lower end that left the 64 bits upwards stays the largest finite number, which is still a lower end; and so below.
static Interval bounded(Wide lo, Wide hi) {
  if (lo > INT64_MAX) lo = INT64_MAX;
  if (hi < INT64_MIN) hi = INT64_MIN;
  return {clip(lo), clip(hi)};
}

Interval add(Interval a, Interval b) {
  const Wide lo = a.lo <= -kInf || b.lo <= -kInf ? -kInf : a.lo + b.lo;
  const Wide hi = a.hi >= kInf || b.hi >= kInf ? kInf : a.hi + b.hi;
  return bounded(lo, hi);
}

Interval mul(Interval a, Interval b) {
  const Wide p[] = {times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)};
  return bounded(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
}

Interval floordiv(Interval a, Interval b) {
  if (b.lo <= 0 && b.hi >= 0) return {};  // the divisor may be 0
  Wide lo = kInf, hi = -kInf;
  for (Wide x : {a.lo, a.hi}) {
    for (Wide y : {b.lo, b.hi}) {
      Wide q;
      if (infinite(x)) {
        // An infinite divisor does not make it smaller than the finite end of the divisor does.
        q = (x < 0) == (y < 0) ? kInf : -kInf;
      } else if (infinite(y)) {
        q = x == 0 ? 0 : (x < 0) == (y < 0) ? 0 : -1;
      } else {
        q = floor_div(x, y);
      }
      lo = std::min(lo, q);
      hi = std::max(hi, q);
    }
  }
  return bounded(lo, hi);
}

Interval intersect(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

namespace {

Interval power(Interval x, size_t n) {
  Interval out{1, 1};
  for (size_t i = 0; i < n; ++i) out = mul(out, x);
  if (n % 2 == 0 && x.lo < 0 && x.hi > 0) out.lo = 0;
  return out;
}

// One polynomial over atoms as independent variables in a box: plain intervals, then two refinements.
class Box {
 public:
  Box(const DimTable::Impl& t, const Bounds* bounds) : t_(t), bounds_(bounds) {}

  Interval range(const Poly& p, int depth) const {
    Interval out = plain(p);
    if (depth <= 0 || p.size() < 2 || p.size() > kRefinedTerms) return out;
    out = intersect(out, monotone(p, depth));
    return intersect(out, relaxed(p, depth));
  }

 private:
  static constexpr size_t kRefinedTerms = 24;  // of longer polynomials plain intervals have to do

  Interval plain(const Poly& p) const {
    Interval sum{0, 0};
    for (const Term& term : p) {
      Interval product{term.coef, term.coef};
      for (size_t i = 0; i < term.atoms.size();) {
        size_t n = i;
        while (n < term.atoms.size() && term.atoms[n] == term.atoms[i]) ++n;
        product = mul(product, power(t_.atom_range(term.atoms[i], bounds_), n - i));
        i = n;
      }
      sum = add(sum, product);
    }
    return sum;
  }

  // The polynomial with `a` fixed.
  static std::optional<Poly> fix(const Poly& p, Atom a, int64_t value) {
    Poly out;
    for (const Term& t : p) {
      Term u{{}, t.coef};
      for (Atom x : t.atoms) {
        if (x != a) {
          u.atoms.push_back(x);
        } else if (__builtin_mul_overflow(u.coef, value, &u.coef)) {
          return std::nullopt;
        }
      }
      auto sum = u.coef ? dim::add(out, {u}) : std::optional(out);
      if (!sum) return std::nullopt;
      out = std::move(*sum);
    }
    return out;
  }

  static std::optional<Poly> derivative(const Poly& p, Atom a) {
    Poly out;
    for (const Term& t : p) {
      const auto n = std::count(t.atoms.begin(), t.atoms.end(), a);
      if (n == 0) continue;
      Term u = t;
      u.atoms.erase(std::find(u.atoms.begin(), u.atoms.end(), a));
      if (__builtin_mul_overflow(u.coef, static_cast<int64_t>(n), &u.coef)) return std::nullopt;
      auto sum = dim::add(out, {u});
      if (!sum) return std::nullopt;
      out = std::move(*sum);
    }
    return out;
  }

  // Where the polynomial rises or falls in one variable over the whole box, its ends lie at that variable's ends.
  Interval monotone(const Poly& p, int depth) const {
    std::vector<Atom> seen, repeated;
    for (const Term& t : p) {
      for (size_t i = 0; i < t.atoms.size(); ++i) {
        if (i && t.atoms[i] == t.atoms[i - 1]) continue;
        auto& list = std::find(seen.begin(), seen.end(), t.atoms[i]) == seen.end() ? seen : repeated;
        list.push_back(t.atoms[i]);
      }
    }
    for (Atom a : repeated) {
      const Interval x = t_.atom_range(a, bounds_);
      if (infinite(x.lo) || infinite(x.hi)) continue;
      auto slope = derivative(p, a);
      if (!slope) continue;
      const Interval s = plain(*slope);
      if (s.lo < 0 && s.hi > 0) continue;
      auto low = fix(p, a, static_cast<int64_t>(s.lo >= 0 ? x.lo : x.hi));
      auto high = fix(p, a, static_cast<int64_t>(s.lo >= 0 ? x.hi : x.lo));
      if (!low || !high) continue;
      return {range(*low, depth - 1).lo, range(*high, depth - 1).hi};
    }
    return {};
  }

  // n = floordiv(a, d) lies in [(a - d + 1) / d, a / d]: put into linear terms, so that T - floordiv(T, 2) sees one T.
  Interval relaxed(const Poly& p, int depth) const {
    int64_t lcm = 1;
    auto divisor = [&](const Term& t) -> int64_t {
      if (t.atoms.size() != 1 || t_.atoms[t.atoms[0]].kind != Kind::floordiv) return 0;
      const auto d = t_.atoms[t.atoms[0]].args[1].constant();
      return d && *d > 0 ? *d : 0;
    };
    for (const Term& t : p) {
      if (const int64_t d = divisor(t)) {
        if (d > (1 << 20) || lcm > (1 << 20)) return {};
        lcm = std::lcm(lcm, d);
      }
    }
    if (lcm == 1) return {};
    Poly high, low;
    auto accumulate = [](Poly& to, const Poly& what, int64_t scale) {
      auto sum = dim::add(to, what, scale);
      if (sum) to = std::move(*sum);
      return sum.has_value();
    };
    for (const Term& t : p) {
      const int64_t d = divisor(t);
      if (!d) {
        if (!accumulate(high, {t}, lcm) || !accumulate(low, {t}, lcm)) return {};
        continue;
      }
      const Poly top = t_.poly(t_.atoms[t.atoms[0]].args[0]);
      const auto bottom = dim::add(top, dim::constant(d - 1), -1);
      int64_t scale;
      if (!bottom || __builtin_mul_overflow(t.coef, lcm / d, &scale)) return {};
      if (!accumulate(high, scale > 0 ? top : *bottom, scale) || !accumulate(low, scale > 0 ? *bottom : top, scale))
        return {};
    }
    const Wide lo = range(low, depth - 1).lo, hi = range(high, depth - 1).hi;
    return {lo <= -kInf ? lo : -floor_div(-lo, lcm), hi >= kInf ? hi : floor_div(hi, lcm)};
  }

  const DimTable::Impl& t_;
  const Bounds* bounds_;
};

}  // namespace
}  // namespace dim

using dim::Interval;
using dim::Kind;
using dim::Poly;
using dim::Wide;

// Of the symbol's atom, which is the symbol divided by its multiple.
Interval DimTable::Impl::symbol_range(uint32_t id, const Bounds* bounds) const {
  const Symbol& s = symbols[id];
  Wide lo = s.min, hi = s.max;
  if (bounds) {
    for (const Bound& b : *bounds) {
      if (b.symbol == id) lo = std::max(lo, Wide{b.min}), hi = std::min(hi, Wide{b.max});
    }
  }
  return {-dim::floor_div(-lo, s.multiple), dim::floor_div(hi, s.multiple)};
}

Interval DimTable::Impl::atom_range(dim::Atom a, const Bounds* bounds) const {
  return bounds && !bounds->empty() ? compute_atom_range(atoms[a], bounds) : atoms[a].range;
}

Interval DimTable::Impl::compute_atom_range(const dim::AtomDef& def, const Bounds* bounds) const {
  if (def.kind == Kind::symbol) return symbol_range(def.symbol, bounds);
  const Interval a = range(def.args[0], bounds), b = range(def.args[1], bounds);
  switch (def.kind) {
    case Kind::floordiv: return dim::floordiv(a, b);
    case Kind::mod:  // also by a constant, where the dividend is large
      // The sign is the divisor's (floor).
      if (b.lo > 0)
        return {0, b.hi >= dim::kInf ? (a.lo >= 0 ? a.hi : dim::kInf)
                   : a.lo >= 0       ? std::min(a.hi, b.hi - 1)
                                     : b.hi - 1};
      if (b.hi < 0) return {b.lo <= -dim::kInf ? b.lo : b.lo + 1, 0};
      return {};
    case Kind::sum: return dim::add(a, b);
    case Kind::product: return dim::mul(a, b);
    case Kind::max:
    case Kind::min: {
      Interval out = a;
      for (size_t i = 1; i < def.args.size(); ++i) {
        const Interval x = range(def.args[i], bounds);
        out = def.kind == Kind::max ? Interval{std::max(out.lo, x.lo), std::max(out.hi, x.hi)}
                                    : Interval{std::min(out.lo, x.lo), std::min(out.hi, x.hi)};
      }
      return out;
    }
    case Kind::symbol: break;
  }
  return {};
}

Interval DimTable::Impl::range(const Poly& p, const Bounds* bounds) const {
  return dim::Box(*this, bounds).range(p, 3);
}

Interval DimTable::Impl::range(Dim d, const Bounds* bounds) const {
  if (!d.is_expr()) return {*d.constant(), *d.constant()};
  return range(exprs[static_cast<size_t>(index(d))], bounds);
}

bool DimTable::Impl::nonzero(const Poly& p) const {
  const Interval r = range(p, nullptr);
  return r.lo > 0 || r.hi < 0;
}

namespace {
uint64_t magnitude(int64_t v) { return v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v); }
}  // namespace

uint64_t DimTable::Impl::multiple(const Poly& p) const {
  uint64_t g = 0;
  for (const dim::Term& t : p) {
    uint64_t m = magnitude(t.coef);
    for (dim::Atom a : t.atoms) {
      // Too large a multiple is no worse a divisor than what fits.
      uint64_t next;
      if (!__builtin_mul_overflow(m, magnitude(atoms[a].multiple), &next)) m = next;
    }
    g = std::gcd(g, m);
  }
  return g;
}

int64_t DimTable::Impl::compute_multiple(const dim::AtomDef& def) const {
  uint64_t g = 1;
  const Interval r = def.kind == Kind::symbol ? def.range : Interval{};
  switch (def.kind) {
    case Kind::symbol:
      if (r.lo == r.hi && r.lo != 0) g = magnitude(static_cast<int64_t>(r.lo));
      break;
    case Kind::floordiv: break;
    case Kind::product: {
      const uint64_t a = multiple(poly(def.args[0])), b = multiple(poly(def.args[1]));
      if (__builtin_mul_overflow(a, b, &g)) g = a;
      break;
    }
    case Kind::mod:
    case Kind::max:
    case Kind::min:
    case Kind::sum:
      g = 0;
      for (Dim d : def.args) g = std::gcd(g, multiple(poly(d)));
      break;
  }
  return g == 0 || g > static_cast<uint64_t>(INT64_MAX) ? 1 : static_cast<int64_t>(g);
}

std::optional<bool> DimTable::equal(Dim a, Dim b) const {
  if (a == b) return true;
  if (a.constant() && b.constant()) return false;
  auto gap = dim::add(impl_->poly(a), impl_->poly(b), -1);
  if (!gap) return std::nullopt;
  const Interval r = impl_->range(*gap, nullptr);
  if (r.lo == 0 && r.hi == 0) return true;
  if (r.lo > 0 || r.hi < 0) return false;
  // g * n + c is never 0 where g does not divide c.
  const int64_t c = dim::constant_term(*gap);
  if (c != 0) {
    gap->pop_back();
    const uint64_t g = impl_->multiple(*gap);
    if (g != 0 && magnitude(c) % g != 0) return false;
  }
  return std::nullopt;
}

std::optional<bool> DimTable::divisible(Dim d, int64_t by) const {
  const uint64_t m = magnitude(by);
  if (m == 1) return true;
  if (m == 0) return equal(d, 0);  // only 0 is a multiple of 0
  if (auto c = d.constant()) return magnitude(*c) % m == 0;
  Poly p = impl_->poly(d);
  if (impl_->multiple(p) % m == 0) return true;
  const Interval r = impl_->range(p, nullptr);
  if (r.lo == r.hi) return r.lo % static_cast<Wide>(m) == 0;
  const int64_t c = dim::constant_term(p);
  if (c != 0) p.pop_back();
  // g * n + c = 0 (mod m) has a solution only where gcd(g, m) divides c.
  if (magnitude(c) % std::gcd(impl_->multiple(p), m) != 0) return false;
  return std::nullopt;
}

std::pair<int64_t, int64_t> DimTable::range(Dim d, const Bounds& bounds) const {
  const Interval r = impl_->range(d, &bounds);
  auto saturate = [](Wide v) {
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : static_cast<int64_t>(v);
  };
  return {saturate(r.lo), saturate(r.hi)};
}

}  // namespace tern
