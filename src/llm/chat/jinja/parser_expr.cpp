// Expressions, by Jinja2's precedence: conditional < or < and < not < comparison < sum < ~ < product < ** < unary, then
// attributes, subscripts and calls, then filters and tests.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "llm/chat/jinja/parser.h"
#include "llm/chat/lib/library.h"

namespace tern::jinja {
namespace {
struct OpName {
  std::string_view text;
  Op op;
};
constexpr OpName kCompare[] = {{"==", Op::eq}, {"!=", Op::ne}, {"<", Op::lt},
                               {"<=", Op::le}, {">", Op::gt},  {">=", Op::ge}};
constexpr OpName kSum[] = {{"+", Op::add}, {"-", Op::sub}};
constexpr OpName kProduct[] = {{"*", Op::mul}, {"/", Op::div}, {"//", Op::floordiv}, {"%", Op::mod}};

template <size_t n>
const OpName* op_of(const OpName (&table)[n], const Token& token) {
  if (!token.is(TokenKind::op)) return nullptr;
  const auto* it = std::find_if(table, table + n, [&](const OpName& row) { return row.text == token.text; });
  return it == table + n ? nullptr : it;
}
}  // namespace

ExprPtr Parser::make(ExprKind kind) const {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->line = now().line;
  return node;
}

ExprPtr Parser::make(ExprKind kind, ExprPtr a, ExprPtr b) {
  ExprPtr node = make(kind);
  if (a) node->line = a->line;
  adopt(*node, std::move(a));
  if (b) adopt(*node, std::move(b));
  return node;
}

void Parser::adopt(Expr& node, ExprPtr kid) {
  if (kid) {
    node.depth = std::max(node.depth, kid->depth + 1);
    if (node.depth > kMaxSyntaxDepth) fail("nested too deeply");
  }
  node.kids.push_back(std::move(kid));
}

// One expression, or a tuple where commas follow.
ExprPtr Parser::tuple(bool conditional, std::string_view end_name) {
  const auto ends = [&] {
    const Token& token = now();
    return token.is(TokenKind::output_end) || token.is(TokenKind::block_end) || token.is_op(")") ||
           (!end_name.empty() && token.is_name(end_name));
  };
  const auto one = [&] { return conditional ? expression() : disjunction(); };
  if (failed()) return nullptr;
  if (ends()) {
    fail("wants an expression");
    return nullptr;
  }
  ExprPtr first = one();
  if (!now().is_op(",")) return first;
  ExprPtr node = make(ExprKind::tuple);
  adopt(*node, std::move(first));
  while (!failed() && take_op(",") && !ends()) adopt(*node, one());
  return node;
}

ExprPtr Parser::expression() {
  const Nest nest(*this);
  if (failed()) return nullptr;
  ExprPtr node = disjunction();
  while (!failed() && take_name("if")) {
    ExprPtr condition = disjunction();
    ExprPtr whole = make(ExprKind::conditional, std::move(condition), std::move(node));
    adopt(*whole, take_name("else") ? expression() : nullptr);
    node = std::move(whole);
  }
  return node;
}

ExprPtr Parser::disjunction() {
  ExprPtr left = conjunction();
  while (!failed() && take_name("or")) left = make(ExprKind::logic_or, std::move(left), conjunction());
  return left;
}

ExprPtr Parser::conjunction() {
  ExprPtr left = negation();
  while (!failed() && take_name("and")) left = make(ExprKind::logic_and, std::move(left), negation());
  return left;
}

ExprPtr Parser::negation() {
  const Nest nest(*this);
  if (failed()) return nullptr;
  if (take_name("not")) return make(ExprKind::logic_not, negation());
  return comparison();
}

ExprPtr Parser::comparison() {
  ExprPtr first = sum();
  ExprPtr node;
  while (!failed()) {
    Op op = Op::in;
    if (const OpName* row = op_of(kCompare, now())) {
      op = row->op;
      next();
    } else if (now().is_name("not") && ahead().is_name("in")) {
      op = Op::not_in;
      next();
      next();
    } else if (!take_name("in")) {
      break;
    }
    if (!node) node = make(ExprKind::compare, std::move(first));
    node->ops.push_back(op);
    adopt(*node, sum());
  }
  return node ? std::move(node) : std::move(first);
}

ExprPtr Parser::sum() {
  ExprPtr left = concatenation();
  while (const OpName* row = failed() ? nullptr : op_of(kSum, now())) {
    next();
    left = make(ExprKind::arithmetic, std::move(left), concatenation());
    left->op = row->op;
  }
  return left;
}

ExprPtr Parser::concatenation() {
  ExprPtr first = product();
  if (failed() || !now().is_op("~")) return first;
  ExprPtr node = make(ExprKind::concat, std::move(first));
  while (!failed() && take_op("~")) adopt(*node, product());
  return node;
}

ExprPtr Parser::product() {
  ExprPtr left = power();
  while (const OpName* row = failed() ? nullptr : op_of(kProduct, now())) {
    next();
    left = make(ExprKind::arithmetic, std::move(left), power());
    left->op = row->op;
  }
  return left;
}

ExprPtr Parser::power() {
  ExprPtr left = unary();
  while (!failed() && take_op("**")) {
    left = make(ExprKind::arithmetic, std::move(left), unary());
    left->op = Op::pow;
  }
  return left;
}

ExprPtr Parser::unary(bool with_filters) {
  const Nest nest(*this);
  if (failed()) return nullptr;
  ExprPtr node;
  if (take_op("-"))
    node = make(ExprKind::negate, unary(false));
  else if (take_op("+"))
    node = make(ExprKind::plus, unary(false));
  else
    node = primary();
  node = postfix(std::move(node));
  return with_filters ? filters(std::move(node)) : std::move(node);
}

ExprPtr Parser::primary() {
  const Token& token = now();
  ExprPtr node = make(ExprKind::constant);
  if (token.is(TokenKind::name)) {
    const std::string& name = token.text;
    next();
    if (name == "true" || name == "True")
      node->value = Value(true);
    else if (name == "false" || name == "False")
      node->value = Value(false);
    else if (name == "none" || name == "None")
      node->value = Value::none();
    else {
      node->kind = ExprKind::name;
      node->text = name;
      node->symbol = out_.symbols.number(name);
      if (macro_ != nullptr) {
        macro_->takes_more |= name == "varargs";
        macro_->takes_named |= name == "kwargs";
      }
    }
  } else if (token.is(TokenKind::string)) {
    std::string text;
    while (now().is(TokenKind::string)) {  // neighbours are one string
      text += now().text;
      next();
    }
    node->value = Value(std::move(text));
  } else if (token.is(TokenKind::integer) || token.is(TokenKind::real)) {
    node->value = token.is(TokenKind::real) ? Value(token.real) : Value(token.integer);
    next();
  } else if (take_op("(")) {
    if (take_op(")")) return make(ExprKind::tuple);
    node = tuple();
    want_op(")");
  } else if (take_op("[")) {
    return list();
  } else if (take_op("{")) {
    return dict();
  } else {
    fail("wants an expression");
  }
  return node;
}

ExprPtr Parser::list() {
  ExprPtr node = make(ExprKind::list);
  while (!failed() && !now().is_op("]")) {
    if (!node->kids.empty()) {
      want_op(",");
      if (now().is_op("]")) break;
    }
    adopt(*node, expression());
  }
  want_op("]");
  return node;
}

ExprPtr Parser::dict() {
  ExprPtr node = make(ExprKind::dict);
  while (!failed() && !now().is_op("}")) {
    if (!node->kids.empty()) {
      want_op(",");
      if (now().is_op("}")) break;
    }
    adopt(*node, expression());
    want_op(":");
    adopt(*node, expression());
  }
  want_op("}");
  return node;
}

ExprPtr Parser::postfix(ExprPtr node) {
  while (!failed()) {
    if (now().is_op(".") || now().is_op("[")) {
      node = subscript(std::move(node));
    } else if (now().is_op("(")) {
      node = make(ExprKind::call, std::move(node));
      arguments(*node);
    } else {
      break;
    }
  }
  return node;
}

ExprPtr Parser::subscript(ExprPtr node) {
  if (take_op(".")) {
    if (now().is(TokenKind::integer)) {
      ExprPtr index = make(ExprKind::constant);
      index->value = Value(now().integer);
      next();
      return make(ExprKind::item, std::move(node), std::move(index));
    }
    ExprPtr attribute = make(ExprKind::attribute, std::move(node));
    attribute->text = want_name("an attribute");
    return attribute;
  }
  want_op("[");
  ExprPtr start = slice_part();
  if (!now().is_op(":")) {
    if (!start) fail("wants an index");
    want_op("]");
    return make(ExprKind::item, std::move(node), std::move(start));
  }
  ExprPtr slice = make(ExprKind::slice, std::move(node));
  adopt(*slice, std::move(start));
  for (int part = 0; part < 2; ++part) adopt(*slice, take_op(":") ? slice_part() : nullptr);
  want_op("]");
  return slice;
}

ExprPtr Parser::slice_part() { return failed() || now().is_op(":") || now().is_op("]") ? nullptr : expression(); }

// Without a node: the filters of a block, and nothing but filters.
ExprPtr Parser::filters(ExprPtr node, bool pipe_taken) {
  const bool block = node == nullptr;
  while (!failed()) {
    if (pipe_taken || take_op("|")) {
      pipe_taken = false;
      ExprPtr filter = make(ExprKind::filter, std::move(node));
      filter->text = want_name("a filter");
      filter->filter = find_filter(filter->text);
      if (now().is_op("(")) arguments(*filter);
      node = std::move(filter);
    } else if (!block && now().is_name("is")) {
      node = test(std::move(node));
    } else if (!block && now().is_op("(")) {
      node = make(ExprKind::call, std::move(node));
      arguments(*node);
    } else {
      break;
    }
  }
  return node;
}

ExprPtr Parser::test(ExprPtr node) {
  next();
  const bool negated = take_name("not");
  ExprPtr test = make(ExprKind::test, std::move(node));
  test->text = want_name("a test");
  test->test = find_test(test->text);
  const Token& token = now();
  const bool argument = token.is(TokenKind::name)
                            ? !token.is_name("else") && !token.is_name("or") && !token.is_name("and") &&
                                  !token.is_name("if") && !token.is_name("is") && !token.is_name("in") &&
                                  !token.is_name("not")
                            : token.is(TokenKind::string) || token.is(TokenKind::integer) ||
                                  token.is(TokenKind::real) || token.is_op("[") || token.is_op("{");
  if (token.is_name("is")) fail("tests cannot be chained");
  if (token.is_op("(")) {
    arguments(*test);
  } else if (argument && !failed()) {
    ExprPtr value = postfix(primary());
    if (value) test->depth = std::max(test->depth, value->depth + 1);
    if (test->depth > kMaxSyntaxDepth) fail("nested too deeply");
    test->args.push_back(std::move(value));
  }
  return negated ? make(ExprKind::logic_not, std::move(test)) : std::move(test);
}

void Parser::arguments(Expr& node) {
  const auto deep = [&](const ExprPtr& kid) {
    if (kid) node.depth = std::max(node.depth, kid->depth + 1);
    if (node.depth > kMaxSyntaxDepth) fail("nested too deeply");
  };
  want_op("(");
  bool first = true;
  while (!failed() && !now().is_op(")")) {
    if (!first) {
      want_op(",");
      if (now().is_op(")")) break;
    }
    first = false;
    if (take_op("*")) {
      if (node.star) fail("a second \"*\" argument");
      deep(node.star = expression());
    } else if (take_op("**")) {
      if (node.star_star) fail("a second \"**\" argument");
      deep(node.star_star = expression());
    } else if (now().is(TokenKind::name) && ahead().is_op("=")) {
      std::string name = now().text;
      next();
      next();
      node.named.emplace_back(std::move(name), expression());
      deep(node.named.back().second);
    } else {
      if (!node.named.empty() || node.star || node.star_star) fail("a positional argument after a named one");
      node.args.push_back(expression());
      deep(node.args.back());
    }
  }
  want_op(")");
}

}  // namespace tern::jinja
