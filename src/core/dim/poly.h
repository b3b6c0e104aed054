// Polynomials with integer coefficients over atoms: the canonical form of dims. Pure arithmetic, no table.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tern::dim {

using Atom = uint32_t;
using Monomial = std::vector<Atom>;  // ascending, an atom of power n stands n times

struct Term {
  Monomial atoms;
  int64_t coef = 0;
  bool operator==(const Term&) const = default;
};
// No zero coefficients, each monomial once, in the order of `before`; the constant term (no atoms) comes last.
using Poly = std::vector<Term>;

// Graded lexicographic: higher degree first. A monomial order, so leading terms multiply.
bool before(const Monomial& a, const Monomial& b);
Poly constant(int64_t value);
std::optional<int64_t> as_constant(const Poly& p);
int64_t constant_term(const Poly& p);

// nullopt: a coefficient leaves 64 bits, or the result has more than kMaxTerms terms or a degree above kMaxDegree.
inline constexpr size_t kMaxTerms = 128, kMaxDegree = 16;
std::optional<Poly> add(const Poly& a, const Poly& b, int64_t times_b = 1);  // a + times_b * b
std::optional<Poly> mul(const Poly& a, const Poly& b);

// a without the atoms of b; nullopt where b does not divide a.
std::optional<Monomial> divide(const Monomial& a, const Monomial& b);
// The quotient where q divides p without remainder in integers, else nullopt. q is not zero.
std::optional<Poly> divide_exact(const Poly& p, const Poly& q);
// Common integer content (positive) and common monomial of all terms.
int64_t content(const Poly& p, bool with_constant = true);
Monomial common_monomial(const Poly& p);

struct PolyHash {
  size_t operator()(const Poly& p) const;
};

}  // namespace tern::dim
