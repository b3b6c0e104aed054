#include "core/dim/poly.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace tern::dim {

bool before(const Monomial& a, const Monomial& b) {
  if (a.size() != b.size()) return a.size() > b.size();
  return a < b;
}

Poly constant(int64_t value) { return value == 0 ? Poly{} : Poly{{{}, value}}; }

std::optional<int64_t> as_constant(const Poly& p) {
  if (p.empty()) return 0;
  if (p.size() == 1 && p[0].atoms.empty()) return p[0].coef;
  return std::nullopt;
}

int64_t constant_term(const Poly& p) { return !p.empty() && p.back().atoms.empty() ? p.back().coef : 0; }

std::optional<Poly> add(const Poly& a, const Poly& b, int64_t times_b) {
  Poly out;
  out.reserve(a.size() + b.size());
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && before(a[i].atoms, b[j].atoms))) {
      out.push_back(a[i++]);
      continue;
    }
    int64_t coef;
    if (__builtin_mul_overflow(b[j].coef, times_b, &coef)) return std::nullopt;
    if (i < a.size() && a[i].atoms == b[j].atoms) {
      if (__builtin_add_overflow(a[i].coef, coef, &coef)) return std::nullopt;
      ++i;
    }
    if (coef != 0) out.push_back({b[j].atoms, coef});
    ++j;
  }
  if (out.size() > kMaxTerms) return std::nullopt;
  return out;
}

std::optional<Poly> mul(const Poly& a, const Poly& b) {
  Poly products;
  if (a.size() * b.size() > kMaxTerms * 8) return std::nullopt;
  products.reserve(a.size() * b.size());
  for (const Term& x : a) {
    for (const Term& y : b) {
      Term t;
      if (x.atoms.size() + y.atoms.size() > kMaxDegree) return std::nullopt;
      if (__builtin_mul_overflow(x.coef, y.coef, &t.coef)) return std::nullopt;
      std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(), std::back_inserter(t.atoms));
      products.push_back(std::move(t));
    }
  }
  std::stable_sort(products.begin(), products.end(),
                   [](const Term& x, const Term& y) { return before(x.atoms, y.atoms); });
  Poly out;
  for (Term& t : products) {
    if (!out.empty() && out.back().atoms == t.atoms) {
      if (__builtin_add_overflow(out.back().coef, t.coef, &out.back().coef)) return std::nullopt;
    } else {
      if (!out.empty() && out.back().coef == 0) out.pop_back();
      out.push_back(std::move(t));
    }
  }
  if (!out.empty() && out.back().coef == 0) out.pop_back();
  if (out.size() > kMaxTerms) return std::nullopt;
  return out;
}

std::optional<Monomial> divide(const Monomial& a, const Monomial& b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end())) return std::nullopt;
  Monomial out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

std::optional<Poly> divide_exact(const Poly& p, const Poly& q) {
  Poly rest = p, quotient;
  const Term& lead = q.front();
  for (size_t steps = 0; !rest.empty(); ++steps) {
    // In a monomial order the leading term of an exact quotient is the quotient of the leading terms.
    if (steps > kMaxTerms || rest.front().coef % lead.coef != 0) return std::nullopt;
    if (rest.front().coef == INT64_MIN && lead.coef == -1) return std::nullopt;
    auto atoms = divide(rest.front().atoms, lead.atoms);
    if (!atoms) return std::nullopt;
    const Poly term{{*atoms, rest.front().coef / lead.coef}};
    auto product = mul(term, q);
    if (!product) return std::nullopt;
    auto next = add(rest, *product, -1);
    if (!next) return std::nullopt;
    quotient.push_back(term[0]);
    rest = std::move(*next);
  }
  return quotient;
}

int64_t content(const Poly& p, bool with_constant) {
  // Of INT64_MIN there is no absolute value; gcd works on magnitudes.
  uint64_t g = 0;
  for (const Term& t : p) {
    if (t.atoms.empty() && !with_constant) continue;
    const uint64_t magnitude = t.coef < 0 ? 0 - static_cast<uint64_t>(t.coef) : static_cast<uint64_t>(t.coef);
    g = std::gcd(g, magnitude);
  }
  return g > static_cast<uint64_t>(INT64_MAX) ? int64_t{1} << 62 : static_cast<int64_t>(g);
}

Monomial common_monomial(const Poly& p) {
  if (p.empty()) return {};
  Monomial common = p[0].atoms;
  for (const Term& t : p) {
    Monomial next;
    std::set_intersection(common.begin(), common.end(), t.atoms.begin(), t.atoms.end(), std::back_inserter(next));
    common = std::move(next);
  }
  return common;
}

size_t PolyHash::operator()(const Poly& p) const {
  uint64_t h = 0x9e3779b97f4a7c15ull;
  auto feed = [&h](uint64_t v) { h = (h ^ v) * 0xff51afd7ed558ccdull, h ^= h >> 32; };
  for (const Term& t : p) {
    feed(static_cast<uint64_t>(t.coef));
    feed(t.atoms.size());
    for (Atom a : t.atoms) feed(a);
  }
  return static_cast<size_t>(h);
}

}  // namespace tern::dim
