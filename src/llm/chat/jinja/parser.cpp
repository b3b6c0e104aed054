#include "llm/chat/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace tern::jinja {
namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::end: return "the end of the template";
    case TokenKind::block_end: return "\"%}\"";
    case TokenKind::output_end: return "\"}}\"";
    case TokenKind::data: return "text";
    case TokenKind::string: return "a string";
    case TokenKind::integer:
    case TokenKind::real: return "a number";
    case TokenKind::block_begin:
    case TokenKind::output_begin: return "a tag";
    case TokenKind::name:
    case TokenKind::op: break;
  }
  return fmt::format("\"{}\"", printable(token.text, 40));
}

std::unique_ptr<Stmt> make_stmt(StmtKind kind, int line) {
  auto stmt = std::make_unique<Stmt>();
  stmt->kind = kind;
  stmt->line = line;
  return stmt;
}

}  // namespace

Result<Template> parse_template(std::string_view source) {
  if (source.size() > kMaxTemplateBytes)
    return make_error(Code::limit, fmt::format("the chat template has {} bytes, the limit is 1 MiB", source.size()));
  TERN_TRY(std::vector<Token> tokens, lex(source));
  return Parser(std::move(tokens)).run();
}

Result<Template> Parser::run() {
  out_.loop_symbol = out_.symbols.number("loop");
  out_.caller_symbol = out_.symbols.number("caller");
  out_.varargs_symbol = out_.symbols.number("varargs");
  out_.kwargs_symbol = out_.symbols.number("kwargs");
  Body all = body({});
  if (failed_) return std::move(error_);
  out_.body = std::move(all);
  return std::move(out_);
}

void Parser::fail(std::string text, int line) {
  if (failed_) return;
  failed_ = true;
  error_ = template_error(line > 0 ? line : now().line, std::move(text));
}

bool Parser::take_op(std::string_view op) {
  if (!now().is_op(op)) return false;
  next();
  return true;
}

bool Parser::take_name(std::string_view name) {
  if (!now().is_name(name)) return false;
  next();
  return true;
}

void Parser::want_op(std::string_view op) {
  if (!take_op(op)) fail(fmt::format("wants \"{}\", not {}", op, describe(now())));
}

std::string Parser::want_name(std::string_view what) {
  if (!now().is(TokenKind::name)) {
    fail(fmt::format("wants {}, not {}", what, describe(now())));
    return {};
  }
  std::string name = now().text;
  next();
  return name;
}

void Parser::block_end() {
  if (!now().is(TokenKind::block_end)) return fail(fmt::format("wants \"%}}\", not {}", describe(now())));
  next();
}

void Parser::end_tag() {
  next();
  block_end();
}

// Up to the tag whose name is in ends; its name is then the current token. Without ends: up to the end of the template.
Body Parser::body(std::initializer_list<std::string_view> ends) {
  const Nest nest(*this);
  const int line = now().line;
  Body out;
  while (!failed()) {
    const Token& token = now();
    if (token.is(TokenKind::data)) {
      out.push_back(make_stmt(StmtKind::text, token.line));
      out.back()->text = token.text;
      next();
    } else if (token.is(TokenKind::output_begin)) {
      next();
      out.push_back(make_stmt(StmtKind::output, token.line));
      out.back()->expr = tuple();
      if (!now().is(TokenKind::output_end)) fail(fmt::format("wants \"}}}}\", not {}", describe(now())));
      next();
    } else if (token.is(TokenKind::block_begin)) {
      next();
      if (now().is(TokenKind::name) && std::find(ends.begin(), ends.end(), now().text) != ends.end()) return out;
      if (auto stmt = statement()) out.push_back(std::move(stmt));
    } else {
      if (ends.size() > 0) fail(fmt::format("\"{}\" is missing for the block", *(ends.end() - 1)), line);
      return out;
    }
  }
  return out;
}

std::unique_ptr<Stmt> Parser::statement() {
  const int line = now().line;
  const std::string name = want_name("a statement");
  if (failed()) return nullptr;
  if (name == "if") return branch();
  if (name == "for") return loop();
  if (name == "set") return set();
  if (name == "macro") return macro();
  if (name == "call") return call_block();
  if (name == "filter") return filter_block();
  if (name == "with") return with_block();
  if (name == "generation") {  // marks what the model wrote, for training; text is text
    auto stmt = make_stmt(StmtKind::scope, line);
    block_end();
    stmt->body = body({"endgeneration"});
    end_tag();
    return stmt;
  }
  if (name == "break" || name == "continue") {
    if (loops_ == 0) fail(fmt::format("\"{}\" outside of a loop", name), line);
    block_end();
    return make_stmt(name == "break" ? StmtKind::break_loop : StmtKind::continue_loop, line);
  }
  fail(fmt::format("the statement \"{}\" is not supported here", printable(name, 40)), line);
  return nullptr;
}

std::unique_ptr<Stmt> Parser::branch() {
  auto stmt = make_stmt(StmtKind::branch, now().line);
  while (!failed()) {
    ExprPtr condition = tuple(false);
    block_end();
    Body then = body({"elif", "else", "endif"});
    stmt->branches.emplace_back(std::move(condition), std::move(then));
    if (failed() || take_name("elif")) continue;
    if (take_name("else")) {
      block_end();
      stmt->otherwise = body({"endif"});
    }
    end_tag();
    break;
  }
  return stmt;
}

std::unique_ptr<Stmt> Parser::loop() {
  auto stmt = make_stmt(StmtKind::loop, now().line);
  stmt->target = target();
  if (!take_name("in")) fail(fmt::format("wants \"in\", not {}", describe(now())));
  stmt->expr = tuple(false, "recursive");
  if (take_name("if")) stmt->condition = expression();
  if (take_name("recursive")) fail("recursive loops are not supported");
  block_end();
  ++loops_;
  stmt->body = body({"else", "endfor"});
  --loops_;
  if (!failed() && take_name("else")) {
    block_end();
    stmt->otherwise = body({"endfor"});
  }
  end_tag();
  return stmt;
}

ExprPtr Parser::target_item() {
  if (take_op("(")) {
    ExprPtr inner = target();
    want_op(")");
    return inner;
  }
  ExprPtr node = make(ExprKind::name);
  node->text = want_name("a name to assign to");
  for (const std::string_view reserved :
       {"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"})
    if (node->text == reserved) fail(fmt::format("cannot assign to \"{}\"", node->text));
  node->symbol = out_.symbols.number(node->text);
  if (!take_op(".")) return node;
  ExprPtr attribute = make(ExprKind::attribute, std::move(node));
  attribute->text = want_name("an attribute");
  return attribute;
}

ExprPtr Parser::target() {
  const Nest nest(*this);
  if (failed()) return nullptr;
  ExprPtr first = target_item();
  if (!now().is_op(",")) return first;
  ExprPtr tuple = make(ExprKind::tuple);
  adopt(*tuple, std::move(first));
  while (!failed() && take_op(",")) {
    if (now().is_name("in") || now().is_op("=") || now().is_op(")")) break;
    adopt(*tuple, target_item());
  }
  return tuple;
}

std::unique_ptr<Stmt> Parser::set() {
  auto stmt = make_stmt(StmtKind::set, now().line);
  stmt->target = target();
  if (take_op("=")) {
    stmt->expr = tuple();
    block_end();
    return stmt;
  }
  stmt->kind = StmtKind::capture;
  if (now().is_op("|")) stmt->expr = filters(nullptr);
  block_end();
  stmt->body = body({"endset"});
  end_tag();
  return stmt;
}

void Parser::parameters(MacroDef& macro) {
  want_op("(");
  bool optional = false;
  while (!failed() && !now().is_op(")")) {
    if (!macro.parameters.empty()) {
      want_op(",");
      if (now().is_op(")")) break;
    }
    Parameter parameter;
    parameter.name = want_name("a parameter");
    parameter.symbol = out_.symbols.number(parameter.name);
    if (take_op("=")) {
      parameter.fallback = expression();
      optional = true;
    } else if (optional) {
      fail("a parameter without default after one with");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  want_op(")");
}

std::unique_ptr<Stmt> Parser::macro() {
  auto stmt = make_stmt(StmtKind::macro, now().line);
  stmt->macro = std::make_unique<MacroDef>();
  MacroDef& def = *stmt->macro;
  stmt->target = make(ExprKind::name);
  stmt->target->text = def.name = want_name("a macro's name");
  stmt->target->symbol = out_.symbols.number(def.name);
  parameters(def);
  block_end();
  MacroDef* outer = std::exchange(macro_, &def);
  const uint32_t loops = std::exchange(loops_, 0);
  def.body = body({"endmacro"});
  macro_ = outer;
  loops_ = loops;
  end_tag();
  return stmt;
}

std::unique_ptr<Stmt> Parser::call_block() {
  auto stmt = make_stmt(StmtKind::call, now().line);
  stmt->macro = std::make_unique<MacroDef>();
  stmt->macro->name = "caller";
  if (now().is_op("(")) parameters(*stmt->macro);
  stmt->expr = expression();
  if (!failed() && stmt->expr->kind != ExprKind::call) fail("a call block wants a call");
  block_end();
  const uint32_t loops = std::exchange(loops_, 0);
  stmt->macro->body = body({"endcall"});
  loops_ = loops;
  end_tag();
  return stmt;
}

std::unique_ptr<Stmt> Parser::filter_block() {
  auto stmt = make_stmt(StmtKind::filter, now().line);
  stmt->expr = filters(nullptr, true);
  block_end();
  stmt->body = body({"endfilter"});
  end_tag();
  return stmt;
}

std::unique_ptr<Stmt> Parser::with_block() {
  auto stmt = make_stmt(StmtKind::with, now().line);
  while (!failed() && !now().is(TokenKind::block_end)) {
    if (!stmt->bindings.empty()) want_op(",");
    ExprPtr name = target();
    want_op("=");
    stmt->bindings.emplace_back(std::move(name), expression());
  }
  block_end();
  stmt->body = body({"endwith"});
  end_tag();
  return stmt;
}

}  // namespace tern::jinja
