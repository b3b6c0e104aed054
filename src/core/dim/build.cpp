// Interning: every expression is brought into canonical form where it is made, so that equality is an id comparison.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/dim/impl.h"

namespace tern {

using dim::Atom;
using dim::AtomDef;
using dim::Kind;
using dim::Poly;
using dim::Term;

DimTable::DimTable() : impl_(std::make_unique<Impl>()) {}
DimTable::~DimTable() = default;

dim::Poly DimTable::Impl::poly(Dim d) const {
  return d.expr_ ? exprs[static_cast<size_t>(d.value_)] : dim::constant(d.value_);
}

Dim DimTable::Impl::intern(Poly p) {
  if (auto c = dim::as_constant(p)) return *c;
  auto [it, fresh] = expr_ids.try_emplace(std::move(p), static_cast<int64_t>(exprs.size()));
  if (fresh) exprs.push_back(it->first);
  Dim d;
  d.value_ = it->second;
  d.expr_ = true;
  return d;
}

Dim DimTable::Impl::atom(Kind kind, std::vector<Dim> args) {
  auto [it, fresh] = atom_ids.try_emplace({kind, 0, args}, static_cast<Atom>(atoms.size()));
  if (fresh) {
    AtomDef def{kind, 0, std::move(args), {}, 1};
    def.range = compute_atom_range(def, nullptr);
    def.multiple = compute_multiple(def);
    for (Dim d : def.args) def.weight += weight(poly(d));
    atoms.push_back(std::move(def));
  }
  return intern({{{it->second}, 1}});
}

uint64_t DimTable::Impl::weight(const Poly& p) const {
  uint64_t w = 0;
  for (const Term& t : p) {
    ++w;
    for (Atom a : t.atoms) w += atoms[a].weight;
  }
  return w;
}

Dim DimTable::Impl::add(Dim a, Dim b, int64_t times_b) {
  if (auto sum = dim::add(poly(a), poly(b), times_b)) return intern(std::move(*sum));
  if (times_b != 1) b = mul(b, times_b);
  return atom(Kind::sum, {std::min(a, b), std::max(a, b)});
}

Dim DimTable::Impl::mul(Dim a, Dim b) {
  if (auto product = dim::mul(poly(a), poly(b));
      product && (a.constant() || b.constant() || weight(*product) <= kMaxWeight)) {
    return intern(std::move(*product));
  }
  return atom(Kind::product, {std::min(a, b), std::max(a, b)});
}

Dim DimTable::Impl::floordiv(Dim a, Dim b) {
  const auto by = b.constant();
  if (by == 0) return atom(Kind::floordiv, {a, b});  // an error when it is evaluated
  if (by) {
    if (a.constant() == INT64_MIN && *by == -1) return atom(Kind::floordiv, {a, b});
    if (*by == INT64_MIN) return atom(Kind::floordiv, {a, b});
    return *by > 0 ? floordiv_const(poly(a), *by) : floordiv(mul(a, -1), -*by);
  }
  return floordiv_poly(a, b);
}

// floor(p / by), by > 0. Whole multiples leave the division: p = by * q + r with coefficients of r in [0, by).
Dim DimTable::Impl::floordiv_const(const Poly& p, int64_t by) {
  if (weight(p) > kMaxWeight) return atom(Kind::floordiv, {intern(p), by});
  Poly quotient, rest;
  for (const Term& t : p) {
    const int64_t q = static_cast<int64_t>(dim::floor_div(t.coef, by)), r = t.coef - q * by;
    if (q) quotient.push_back({t.atoms, q});
    if (r) rest.push_back({t.atoms, r});
  }
  const Dim whole = intern(quotient);
  const dim::Interval r = range(rest, nullptr);
  if (r.lo >= 0 && r.hi < by) return whole;
  // floor((g * n + c) / (g * d)) = floor((n + floor(c / g)) / d)
  const int64_t g = std::gcd(dim::content(rest, false), by);
  for (Term& t : rest) t.coef = static_cast<int64_t>(dim::floor_div(t.coef, g));
  std::erase_if(rest, [](const Term& t) { return t.coef == 0; });
  by /= g;
  if (by == 1) return add(whole, intern(std::move(rest)), 1);
  // floor((floor(n / e) + c) / d) = floor((n + c * e) / (d * e))
  if (rest[0].coef == 1 && rest[0].atoms.size() == 1 &&
      (rest.size() == 1 || (rest.size() == 2 && rest[1].atoms.empty()))) {
    const AtomDef& inner = atoms[rest[0].atoms[0]];
    const auto inner_by = inner.kind == Kind::floordiv ? inner.args[1].constant() : std::nullopt;
    int64_t scaled, total;
    if (inner_by && *inner_by > 0 && !__builtin_mul_overflow(dim::constant_term(rest), *inner_by, &scaled) &&
        !__builtin_mul_overflow(by, *inner_by, &total)) {
      const Dim numerator = inner.args[0];
      return add(whole, floordiv(add(numerator, scaled, 1), total), 1);
    }
  }
  const Dim numerator = intern(std::move(rest));
  return add(whole,
             numerator.constant() ? Dim(static_cast<int64_t>(dim::floor_div(*numerator.constant(), by)))
                                  : atom(Kind::floordiv, {numerator, by}),
             1);
}

Dim DimTable::Impl::floordiv_poly(Dim a, Dim b) {
  Poly p = poly(a), q = poly(b);
  if (weight(p) + weight(q) <= kMaxWeight && nonzero(q)) {
    if (p.empty()) return 0;
    if (auto exact = dim::divide_exact(p, q)) return intern(std::move(*exact));
    // Multiples of a single-term divisor leave the division.
    if (q.size() == 1) {
      Poly quotient, rest;
      for (const Term& t : p) {
        auto atoms_left = dim::divide(t.atoms, q[0].atoms);
        if (atoms_left && t.coef % q[0].coef == 0 && !(t.coef == INT64_MIN && q[0].coef == -1)) {
          quotient.push_back({*atoms_left, t.coef / q[0].coef});
        } else {
          rest.push_back(t);
        }
      }
      if (!quotient.empty()) return add(intern(std::move(quotient)), floordiv_poly(intern(std::move(rest)), b), 1);
    }
    const dim::Interval low = range(p, nullptr), gap = dim::add(p, dim::constant(0)) && dim::add(q, p, -1)
                                                           ? range(*dim::add(q, p, -1), nullptr)
                                                           : dim::Interval{};
    if (low.lo >= 0 && gap.lo >= 1) return 0;
    // Common factors cancel, also the sign of the divisor.
    Poly both = p;
    both.insert(both.end(), q.begin(), q.end());
    const int64_t g = dim::content(both);
    const dim::Monomial m = dim::common_monomial(both);
    const int64_t scale = q[0].coef < 0 ? -g : g;
    auto cancelled = [&](Poly& x) {
      for (Term& t : x) {
        if (t.coef == INT64_MIN && scale == -1) return false;
        t.coef /= scale;
        t.atoms = *dim::divide(t.atoms, m);
      }
      return true;
    };
    if (scale != 1 || !m.empty()) {
      Poly p2 = p, q2 = q;
      if (cancelled(p2) && cancelled(q2)) return floordiv(intern(std::move(p2)), intern(std::move(q2)));
    }
  }
  return atom(Kind::floordiv, {a, b});
}

Dim DimTable::Impl::mod(Dim a, Dim b) {
  // With a constant divisor mod is spelled through floordiv, so that b * floordiv(a, b) + mod(a, b) is a again.
  if (b.constant() && *b.constant() != 0 && weight(poly(a)) <= kMaxWeight) return add(a, mul(floordiv(a, b), b), -1);
  if (!b.constant()) {
    const Poly p = poly(a), q = poly(b);
    if (nonzero(q)) {
      if (dim::divide_exact(p, q)) return 0;
      auto gap = dim::add(q, p, -1);
      if (gap && range(p, nullptr).lo >= 0 && range(*gap, nullptr).lo >= 1) return a;
    }
  }
  return atom(Kind::mod, {a, b});
}

Dim DimTable::Impl::extremum(Kind kind, Dim a, Dim b) {
  auto parts = [&](Dim d) -> std::vector<Dim> {
    const Poly p = poly(d);
    const bool single = d.is_expr() && p.size() == 1 && p[0].coef == 1 && p[0].atoms.size() == 1;
    return single && atoms[p[0].atoms[0]].kind == kind ? atoms[p[0].atoms[0]].args : std::vector<Dim>{d};
  };
  // x is never needed beside y: y always beats or equals it.
  auto beaten = [&](Dim x, Dim y) {
    auto lead = kind == Kind::max ? dim::add(poly(y), poly(x), -1) : dim::add(poly(x), poly(y), -1);
    return lead && range(*lead, nullptr).lo >= 0;
  };
  std::vector<Dim> args = parts(a);
  for (Dim d : parts(b)) {
    if (std::any_of(args.begin(), args.end(), [&](Dim x) { return beaten(d, x); })) continue;
    std::erase_if(args, [&](Dim x) { return beaten(x, d); });
    args.push_back(d);
  }
  std::sort(args.begin(), args.end());
  return args.size() == 1 ? args[0] : atom(kind, std::move(args));
}

Dim DimTable::Impl::substitute(Dim d, const std::map<uint32_t, int64_t>& pins, std::map<Atom, Dim>& memo) {
  if (!d.is_expr()) return d;
  auto replaced = [&](Atom a) -> Dim {
    if (auto it = memo.find(a); it != memo.end()) return it->second;
    const AtomDef def = atoms[a];  // a copy: interning moves the table
    Dim out = intern({{{a}, 1}});
    if (def.kind == Kind::symbol) {
      if (auto pin = pins.find(def.symbol); pin != pins.end()) out = pin->second;
    } else {
      std::vector<Dim> args;
      for (Dim arg : def.args) args.push_back(substitute(arg, pins, memo));
      switch (def.kind) {
        case Kind::floordiv: out = floordiv(args[0], args[1]); break;
        case Kind::mod: out = mod(args[0], args[1]); break;
        case Kind::sum: out = add(args[0], args[1], 1); break;
        case Kind::product: out = mul(args[0], args[1]); break;
        case Kind::max:
        case Kind::min:
          out = args[0];
          for (size_t i = 1; i < args.size(); ++i) out = extremum(def.kind, out, args[i]);
          break;
        case Kind::symbol: break;
      }
    }
    memo.emplace(a, out);
    return out;
  };
  const Poly p = poly(d);
  Dim sum = 0;
  for (const Term& t : p) {
    Dim product = t.coef;
    for (Atom a : t.atoms) product = mul(product, replaced(a));
    sum = add(sum, product, 1);
  }
  return sum;
}

namespace {
bool is_name(std::string_view s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (s.empty() || !letter(s[0])) return false;
  if (!std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || digit(c) || c == '.'; })) return false;
  static constexpr std::string_view kFunctions[] = {"floordiv", "ceildiv", "mod", "max", "min", "add", "mul"};
  return std::find(std::begin(kFunctions), std::end(kFunctions), s) == std::end(kFunctions);
}
}  // namespace

Result<Dim> DimTable::symbol(const Symbol& s) {
  Impl& t = *impl_;
  if (!is_name(s.name)) {
    return make_error(Code::invalid,
                      "'" + s.name + "' is no name for a symbol: letters, digits, '_' and '.', no function name");
  }
  if (s.multiple < 1)
    return make_error(Code::invalid, "symbol " + s.name + ": multiple " + std::to_string(s.multiple) + " is below 1");
  const auto lo = static_cast<int64_t>(-dim::floor_div(-dim::Wide{s.min}, s.multiple)),
             hi = static_cast<int64_t>(dim::floor_div(s.max, s.multiple));
  if (lo > hi) {
    return make_error(Code::invalid, "symbol " + s.name + ": no multiple of " + std::to_string(s.multiple) + " in [" +
                                         std::to_string(s.min) + ", " + std::to_string(s.max) + "]");
  }
  if (auto it = t.by_name.find(s.name); it != t.by_name.end()) {
    const Symbol& old = t.symbols[it->second];
    if (old.min != s.min || old.max != s.max || old.multiple != s.multiple || old.late != s.late) {
      return make_error(Code::invalid, "symbol " + s.name + " is declared twice with different bounds");
    }
    return t.intern({{{t.symbol_atom[it->second]}, s.multiple}});
  }
  const auto id = static_cast<uint32_t>(t.symbols.size());
  const auto a = static_cast<Atom>(t.atoms.size());
  t.symbols.push_back(s);
  t.by_name.emplace(s.name, id);
  t.symbol_atom.push_back(a);
  AtomDef def{Kind::symbol, id, {}, {lo, hi}, 1};
  def.multiple = t.compute_multiple(def);
  t.atoms.push_back(std::move(def));
  return t.intern({{{a}, s.multiple}});
}

std::optional<uint32_t> DimTable::find_symbol(std::string_view name) const {
  auto it = impl_->by_name.find(name);
  return it == impl_->by_name.end() ? std::nullopt : std::optional(it->second);
}

const std::vector<Symbol>& DimTable::symbols() const { return impl_->symbols; }

std::optional<uint32_t> DimTable::as_symbol(Dim d) const {
  if (!d.is_expr()) return std::nullopt;
  const Poly& p = impl_->exprs[static_cast<size_t>(Impl::index(d))];
  if (p.size() != 1 || p[0].atoms.size() != 1) return std::nullopt;
  const AtomDef& def = impl_->atoms[p[0].atoms[0]];
  if (def.kind != Kind::symbol || p[0].coef != impl_->symbols[def.symbol].multiple) return std::nullopt;
  return def.symbol;
}

Dim DimTable::add(Dim a, Dim b) { return impl_->add(a, b, 1); }
Dim DimTable::sub(Dim a, Dim b) { return impl_->add(a, b, -1); }
Dim DimTable::mul(Dim a, Dim b) { return impl_->mul(a, b); }
Dim DimTable::floordiv(Dim a, Dim b) { return impl_->floordiv(a, b); }
// ceil(a / b) = -floor(-a / b), spelled as floor((a + b - 1) / b) for b > 0.
Dim DimTable::ceildiv(Dim a, int64_t b) {
  if (b <= 0) return mul(floordiv(mul(a, -1), b), -1);
  return floordiv(add(a, b - 1), b);
}
Dim DimTable::mod(Dim a, Dim b) { return impl_->mod(a, b); }
Dim DimTable::maximum(Dim a, Dim b) { return impl_->extremum(Kind::max, a, b); }
Dim DimTable::minimum(Dim a, Dim b) { return impl_->extremum(Kind::min, a, b); }

Dim DimTable::substitute(Dim d, const Bounds& bounds) {
  std::map<uint32_t, int64_t> pins;  // of the symbol's atom
  for (const Bound& b : bounds) {
    if (b.symbol >= impl_->symbols.size()) continue;
    const dim::Interval r = impl_->symbol_range(b.symbol, &bounds);
    if (r.lo == r.hi) pins[b.symbol] = static_cast<int64_t>(r.lo);
  }
  if (pins.empty()) return d;
  std::map<Atom, Dim> memo;
  return impl_->substitute(d, pins, memo);
}

}  // namespace tern
