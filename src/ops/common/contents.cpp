#include "ops/common/contents.h"

namespace tern {
namespace {

using Answer = OrRefuse<Dim>;

// Whether low <= d for all sizes, or for none.
std::optional<bool> at_least(const DimTable& dims, Dim d, int64_t low) {
  const auto [first, last] = dims.range(d);
  if (first >= low) return true;
  if (last < low) return false;
  return std::nullopt;
}

Answer decided(const DimTable& dims, std::optional<bool> answer, std::string_view relation, Dim a, Dim b) {
  if (answer) return Dim(*answer ? 1 : 0);
  return refuse(dims.text(a) + " " + std::string(relation) + " " + dims.text(b) +
                " holds for some sizes and not for others");
}

std::optional<bool> negated(std::optional<bool> v) { return v ? std::optional(!*v) : v; }
std::optional<bool> less(DimTable& dims, Dim a, Dim b) { return at_least(dims, dims.sub(b, a), 1); }

Dim negative(DimTable& dims, Dim a) { return dims.mul(a, -1); }

// -1, 0 or 1, where it is the same for all sizes (0 beside one of them: that one).
std::optional<int> sign_of(const DimTable& dims, Dim a) {
  if (at_least(dims, a, 0) == true) return 1;
  if (at_least(dims, a, 1) == false) return -1;
  return std::nullopt;
}

// Towards zero, as integers divide on devices; by zero gives 0 there, so the divisor must not be.
Answer quotient(DimTable& dims, Dim a, Dim b) {
  const auto sa = sign_of(dims, a), sb = sign_of(dims, b);
  if (!sa || !sb || (at_least(dims, b, 1) != true && at_least(dims, b, 0) != false))
    return refuse("div(" + dims.text(a) + ", " + dims.text(b) + ") rounds by signs that depend on the sizes");
  const Dim q = dims.floordiv(*sa < 0 ? negative(dims, a) : a, *sb < 0 ? negative(dims, b) : b);
  return *sa == *sb ? q : negative(dims, q);
}

struct Rule {
  ScalarOp op;
  Answer (*value)(DimTable&, Dim a, Dim b, Dim c);
};
#define TERN_RULE(name, ...)                                            \
  Rule {                                                                \
    ScalarOp::name, [](DimTable& dims, Dim a, Dim b, Dim c) -> Answer { \
      (void)dims, (void)a, (void)b, (void)c;                            \
      __VA_ARGS__                                                       \
    }                                                                   \
  }
constexpr Rule kRules[] = {
    TERN_RULE(add, return dims.add(a, b);),
    TERN_RULE(sub, return dims.sub(a, b);),
    TERN_RULE(mul, return dims.mul(a, b);),
    TERN_RULE(div, return quotient(dims, a, b);),
    TERN_RULE(rem, TERN_ACCEPT(const Dim q, quotient(dims, a, b)); return dims.sub(a, dims.mul(q, b));),
    TERN_RULE(min, return dims.minimum(a, b);),
    TERN_RULE(max, return dims.maximum(a, b);),
    TERN_RULE(neg, return negative(dims, a);),
    TERN_RULE(abs, return dims.maximum(a, negative(dims, a));),
    TERN_RULE(sign, return dims.maximum(dims.minimum(a, 1), -1);),
    TERN_RULE(relu, return dims.maximum(a, 0);),
    TERN_RULE(clamp, return dims.minimum(dims.maximum(a, b), c);),
    TERN_RULE(eq, return decided(dims, dims.equal(a, b), "==", a, b);),
    TERN_RULE(ne, return decided(dims, negated(dims.equal(a, b)), "!=", a, b);),
    TERN_RULE(lt, return decided(dims, less(dims, a, b), "<", a, b);),
    TERN_RULE(le, return decided(dims, negated(less(dims, b, a)), "<=", a, b);),
    TERN_RULE(gt, return decided(dims, less(dims, b, a), ">", a, b);),
    TERN_RULE(ge, return decided(dims, negated(less(dims, a, b)), ">=", a, b);),
    TERN_RULE(select, if (b == c) return b; if (!a.constant()) return refuse("it chooses by " + dims.text(a));
              return *a.constant() != 0 ? b : c;),
    TERN_RULE(cast, return a;),
};
#undef TERN_RULE

}  // namespace

OrRefuse<Dim> dim_of(ScalarOp op, DimTable& dims, Dim a, Dim b, Dim c) {
  const ScalarRow& row = scalar_row(op);
  const Dim in[] = {a, b, c};
  bool constant = row.i64 != nullptr && row.rule != ScalarRule::cast;
  for (int i = 0; i < row.arity; ++i) constant = constant && in[i].constant();
  if (constant) {
    int64_t n[3] = {};
    for (int i = 0; i < row.arity; ++i) n[i] = *in[i].constant();
    return Dim(row.i64(n[0], n[1], n[2]));
  }
  for (const Rule& rule : kRules) {
    if (rule.op == op) return rule.value(dims, a, b, c);
  }
  return refuse(std::string(row.name) + " of sizes is no size");
}

}  // namespace tern
