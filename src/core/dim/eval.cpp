// Values of dims at bound symbols, checked: a Dim never yields a wrapped number.
#include <algorithm>

#include "core/dim/impl.h"

namespace tern {
namespace {

using dim::Kind;
using dim::Wide;

class Evaluator {
 public:
  Evaluator(const DimTable::Impl& t, std::span<const int64_t> symbols) : t_(t), symbols_(symbols) {}

  Result<int64_t> dim(Dim d) {
    if (auto c = d.constant()) return *c;
    Wide sum = 0;
    for (const dim::Term& term : t_.poly(d)) {
      Wide product = term.coef;
      for (dim::Atom a : term.atoms) {
        TERN_TRY(int64_t v, atom(a));
        if (__builtin_mul_overflow(product, Wide{v}, &product)) return overflow(d);
      }
      if (__builtin_add_overflow(sum, product, &sum)) return overflow(d);
    }
    if (sum > INT64_MAX || sum < INT64_MIN) return overflow(d);
    return static_cast<int64_t>(sum);
  }

 private:
  Result<int64_t> atom(dim::Atom a) {
    const dim::AtomDef& def = t_.atoms[a];
    if (def.kind == Kind::symbol) return symbol(def.symbol);
    std::vector<int64_t> v;
    for (Dim arg : def.args) {
      TERN_TRY(int64_t x, dim(arg));
      v.push_back(x);
    }
    Wide out = v[0];
    switch (def.kind) {
      case Kind::max: return *std::max_element(v.begin(), v.end());
      case Kind::min: return *std::min_element(v.begin(), v.end());
      case Kind::sum: out += v[1]; break;
      case Kind::product: out *= v[1]; break;
      case Kind::floordiv:
      case Kind::mod:
        if (v[1] == 0) return make_error(Code::invalid, t_.atom_text(a) + " divides by zero");
        out = def.kind == Kind::floordiv ? dim::floor_div(v[0], v[1]) : v[0] - dim::floor_div(v[0], v[1]) * v[1];
        break;
      case Kind::symbol: break;
    }
    if (out > INT64_MAX || out < INT64_MIN) return make_error(Code::limit, t_.atom_text(a) + " does not fit 64 bits");
    return static_cast<int64_t>(out);
  }

  Result<int64_t> symbol(uint32_t id) {
    const Symbol& s = t_.symbols[id];
    if (id >= symbols_.size()) return make_error(Code::invalid, "symbol " + s.name + " has no value");
    if (symbols_[id] % s.multiple != 0) {
      return make_error(Code::invalid, s.name + " = " + std::to_string(symbols_[id]) + " is no multiple of " +
                                           std::to_string(s.multiple));
    }
    return symbols_[id] / s.multiple;
  }

  Error overflow(Dim d) const { return make_error(Code::limit, t_.text(d) + " does not fit 64 bits"); }

  const DimTable::Impl& t_;
  std::span<const int64_t> symbols_;
};

}  // namespace

Result<int64_t> DimTable::eval(Dim d, std::span<const int64_t> symbols) const {
  return Evaluator(*impl_, symbols).dim(d);
}

std::vector<uint32_t> DimTable::symbols_of(Dim d) const {
  std::vector<uint32_t> out;
  std::vector<bool> seen(impl_->atoms.size());
  auto visit = [&](auto&& self, Dim x) -> void {
    if (!x.is_expr()) return;
    for (const dim::Term& term : impl_->exprs[static_cast<size_t>(Impl::index(x))]) {
      for (dim::Atom a : term.atoms) {
        if (seen[a]) continue;
        seen[a] = true;
        const dim::AtomDef& def = impl_->atoms[a];
        if (def.kind == Kind::symbol) out.push_back(def.symbol);
        for (Dim arg : def.args) self(self, arg);
      }
    }
  };
  visit(visit, d);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace tern
