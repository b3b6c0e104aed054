// Inside of DimTable, shared by its four source files: building (build.cpp), proofs (range.cpp), evaluation (eval.cpp),
// text.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/dim/poly.h"
#include "tern/shape.h"

namespace tern {

namespace dim {

// Ends beyond 64 bits are infinite; 128-bit arithmetic keeps every finite step exact.
using Wide = __int128;
inline constexpr Wide kInf = Wide{1} << 100;
struct Interval {
  Wide lo = -kInf, hi = kInf;
};
Interval add(Interval a, Interval b);
Interval mul(Interval a, Interval b);
Interval floordiv(Interval a, Interval b);
Interval intersect(Interval a, Interval b);
Wide floor_div(Wide a, Wide b);  // b != 0

enum class Kind : uint8_t {
  symbol,    // a symbol divided by its multiple, so that "T % 8 == 0" is in the coefficients: T = 8 * atom
  floordiv,  // args {a, b}
  mod,       // args {a, b}; by a constant only where a is large (else it is spelled through floordiv) or b is 0
  max,       // args ascending, at least two
  min,
  sum,  // args {a, b}: a sum or product that does not fit the polynomial form (64-bit coefficients, bounded size)
  product,
};
std::string_view kind_name(Kind kind);

struct AtomDef {
  Kind kind = Kind::symbol;
  uint32_t symbol = 0;
  std::vector<Dim> args;
  Interval range;        // at the symbols' own bounds
  int64_t multiple = 1;  // divides every value
  uint64_t weight = 1;   // symbols and numbers in its text, about
  bool operator==(const AtomDef& o) const { return kind == o.kind && symbol == o.symbol && args == o.args; }
};

}  // namespace dim

struct DimTable::Impl {
  std::vector<Symbol> symbols;
  std::map<std::string, uint32_t, std::less<>> by_name;
  std::vector<dim::Atom> symbol_atom;  // by symbol
  std::vector<dim::AtomDef> atoms;
  std::map<std::tuple<dim::Kind, uint32_t, std::vector<Dim>>, dim::Atom> atom_ids;
  std::vector<dim::Poly> exprs;
  std::unordered_map<dim::Poly, int64_t, dim::PolyHash> expr_ids;

  // Building.
  static int64_t index(Dim d) { return d.value_; }
  dim::Poly poly(Dim d) const;
  // Canonical forms repeat their operands (a product of sums, a remainder through its quotient). Beyond this weight an
  // operation is kept as an atom instead, so that no expression is more than a few times as long as what was asked for.
  static constexpr uint64_t kMaxWeight = 512;
  uint64_t weight(const dim::Poly& p) const;
  Dim intern(dim::Poly p);
  Dim atom(dim::Kind kind, std::vector<Dim> args);
  Dim add(Dim a, Dim b, int64_t times_b);
  Dim mul(Dim a, Dim b);
  Dim floordiv(Dim a, Dim b);
  Dim floordiv_const(const dim::Poly& p, int64_t by);
  Dim floordiv_poly(Dim a, Dim b);
  Dim mod(Dim a, Dim b);
  Dim extremum(dim::Kind kind, Dim a, Dim b);
  Dim substitute(Dim d, const std::map<uint32_t, int64_t>& pins, std::map<dim::Atom, Dim>& memo);

  // Proofs; bounds null: the symbols' own.
  dim::Interval symbol_range(uint32_t symbol, const Bounds* bounds) const;
  dim::Interval atom_range(dim::Atom a, const Bounds* bounds) const;
  dim::Interval compute_atom_range(const dim::AtomDef& def, const Bounds* bounds) const;
  dim::Interval range(const dim::Poly& p, const Bounds* bounds) const;
  dim::Interval range(Dim d, const Bounds* bounds) const;
  uint64_t multiple(const dim::Poly& p) const;  // 0: the polynomial is zero
  int64_t compute_multiple(const dim::AtomDef& def) const;
  bool nonzero(const dim::Poly& p) const;

  // Text.
  std::string text(Dim d) const;
  std::string atom_text(dim::Atom a) const;
};

}  // namespace tern
