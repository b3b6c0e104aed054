// The text of dims. The order in it comes from names alone, never from ids, so that equal graphs print equally.
#include <algorithm>
#include <cctype>

#include "core/dim/impl.h"

namespace tern {

using dim::Kind;

std::string_view dim::kind_name(Kind kind) {
  switch (kind) {
    case Kind::floordiv: return "floordiv";
    case Kind::mod: return "mod";
    case Kind::max: return "max";
    case Kind::min: return "min";
    case Kind::sum: return "add";
    case Kind::product: return "mul";
    case Kind::symbol: break;
  }
  return "symbol";
}

namespace {

// Alphabetical without regard to case, then with: "past + T".
bool text_before(const std::string& a, const std::string& b) {
  auto lower = [](unsigned char c) { return std::tolower(c); };
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (lower(a[i]) != lower(b[i])) return lower(a[i]) < lower(b[i]);
  }
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace

std::string DimTable::Impl::atom_text(dim::Atom a) const {
  const dim::AtomDef& def = atoms[a];
  if (def.kind == Kind::symbol) {
    const Symbol& s = symbols[def.symbol];
    return s.multiple == 1 ? s.name : "floordiv(" + s.name + ", " + std::to_string(s.multiple) + ")";
  }
  std::vector<std::string> args;
  for (Dim d : def.args) args.push_back(text(d));
  if (def.kind != Kind::floordiv && def.kind != Kind::mod) std::sort(args.begin(), args.end(), text_before);
  std::string out(dim::kind_name(def.kind));
  for (size_t i = 0; i < args.size(); ++i) out += (i ? ", " : "(") + args[i];
  return out + ")";
}

std::string DimTable::Impl::text(Dim d) const {
  if (auto c = d.constant()) return std::to_string(*c);
  struct Part {
    size_t degree;
    std::string body;
    bool negative;
    uint64_t coef;
  };
  std::vector<Part> parts;
  for (const dim::Term& t : poly(d)) {
    const bool negative = t.coef < 0;
    uint64_t coef = negative ? 0 - static_cast<uint64_t>(t.coef) : static_cast<uint64_t>(t.coef);
    std::vector<std::string> factors;
    for (dim::Atom a : t.atoms) {
      const dim::AtomDef& def = atoms[a];
      const auto m = def.kind == Kind::symbol ? static_cast<uint64_t>(symbols[def.symbol].multiple) : 1;
      // The coefficient holds the symbol's multiple: 8 * (T / 8) is T.
      if (m > 1 && coef % m == 0) {
        coef /= m;
        factors.push_back(symbols[def.symbol].name);
      } else {
        factors.push_back(atom_text(a));
      }
    }
    std::sort(factors.begin(), factors.end(), text_before);
    Part part{factors.size(), {}, negative, coef};
    for (const std::string& f : factors) part.body += (part.body.empty() ? "" : "*") + f;
    parts.push_back(std::move(part));
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.degree != b.degree ? a.degree > b.degree : text_before(a.body, b.body);
  });
  std::string out;
  for (const Part& p : parts) {
    out += out.empty() ? (p.negative ? "-" : "") : p.negative ? " - " : " + ";
    if (p.body.empty() || p.coef != 1) out += std::to_string(p.coef) + (p.body.empty() ? "" : "*");
    out += p.body;
  }
  return out;
}

std::string DimTable::text(Dim d) const { return impl_->text(d); }

namespace {

class Parser {
 public:
  Parser(DimTable& table, std::string_view text) : table_(table), text_(text) {}

  Result<Dim> run() {
    TERN_TRY(Dim d, sum(0));
    skip();
    if (at_ != text_.size()) return error("nothing more");
    return d;
  }

 private:
  static constexpr int kMaxDepth = 64;

  Error error(std::string_view expected) const {
    std::string found = at_ < text_.size() ? "'" + std::string(text_.substr(at_, 12)) + "'" : "the end";
    return make_error(Code::malformed, "dim: expected " + std::string(expected) + ", found " + found,
                      "column " + std::to_string(at_ + 1));
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<Dim> sum(int depth) {
    if (depth > kMaxDepth) return error("less nesting");
    TERN_TRY(Dim d, product(depth));
    for (;;) {
      const bool plus = take('+');
      if (!plus && !take('-')) return d;
      TERN_TRY(Dim rhs, product(depth));
      d = plus ? table_.add(d, rhs) : table_.sub(d, rhs);
    }
  }

  Result<Dim> product(int depth) {
    TERN_TRY(Dim d, factor(depth));
    while (take('*')) {
      TERN_TRY(Dim rhs, factor(depth));
      d = table_.mul(d, rhs);
    }
    return d;
  }

  Result<Dim> factor(int depth) {
    if (depth > kMaxDepth) return error("less nesting");
    skip();
    if (take('-')) {
      skip();
      if (at_ < text_.size() && digit(text_[at_])) return number(true);
      TERN_TRY(Dim d, factor(depth + 1));
      return table_.mul(d, -1);
    }
    if (take('(')) {
      TERN_TRY(Dim d, sum(depth + 1));
      if (!take(')')) return error("')'");
      return d;
    }
    if (at_ < text_.size() && digit(text_[at_])) return number(false);
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (name.empty()) return error("a number, a symbol or '('");
    if (take('(')) return call(name, start, depth);
    const auto id = table_.find_symbol(name);
    if (!id) {
      return make_error(Code::not_found, "dim: no symbol is named '" + std::string(name) + "'",
                        "column " + std::to_string(start + 1));
    }
    return table_.symbol(Symbol(table_.symbols()[*id]));
  }

  Result<Dim> call(std::string_view name, size_t start, int depth) {
    std::vector<Dim> args;
    do {
      TERN_TRY(Dim d, sum(depth + 1));
      args.push_back(d);
    } while (take(','));
    if (!take(')')) return error("')'");
    using Binary = Dim (DimTable::*)(Dim, Dim);
    static constexpr std::pair<std::string_view, Binary> kFunctions[] = {
        {"floordiv", &DimTable::floordiv}, {"mod", &DimTable::mod}, {"max", &DimTable::maximum},
        {"min", &DimTable::minimum},       {"add", &DimTable::add}, {"mul", &DimTable::mul}};
    const std::string where = "column " + std::to_string(start + 1);
    if (name == "ceildiv" && args.size() == 2 && args[1].constant())
      return table_.ceildiv(args[0], *args[1].constant());
    for (const auto& [known, function] : kFunctions) {
      if (known != name) continue;
      const bool any = name == "max" || name == "min";
      if (args.size() < 2 || (!any && args.size() != 2)) {
        return make_error(Code::malformed, "dim: " + std::string(name) + " takes two arguments", where);
      }
      Dim d = args[0];
      for (size_t i = 1; i < args.size(); ++i) d = (table_.*function)(d, args[i]);
      return d;
    }
    return make_error(Code::malformed, "dim: no function is named '" + std::string(name) + "'", where);
  }

  static bool digit(char c) { return c >= '0' && c <= '9'; }
  Result<Dim> number(bool negative) {
    // Collected below zero, where one more value fits.
    int64_t v = 0;
    while (at_ < text_.size() && digit(text_[at_])) {
      if (__builtin_mul_overflow(v, int64_t{10}, &v) || __builtin_sub_overflow(v, int64_t{text_[at_] - '0'}, &v)) {
        return error("a number of 64 bits");
      }
      ++at_;
    }
    if (!negative && __builtin_sub_overflow(int64_t{0}, v, &v)) return error("a number of 64 bits");
    return Dim(v);
  }

  DimTable& table_;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<Dim> DimTable::parse(std::string_view text) { return Parser(*this, text).run(); }

}  // namespace tern
