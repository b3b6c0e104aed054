// Tokens -> Template. Statements: if, for, set, macro, call, filter, with, raw, break, continue, generation; the others
// of Jinja2 (include, extends, import, block) reach for files and are refused.
#pragma once

#include <string_view>

#include "llm/chat/jinja/ast.h"
#include "llm/chat/jinja/lexer.h"
#include "tern/result.h"

namespace tern::jinja {

inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

Result<Template> parse_template(std::string_view source);

// The parser's halves share this state. The first error sticks; after it every step returns null at once.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Result<Template> run();

 private:
  // Statements (parser.cpp).
  Body body(std::initializer_list<std::string_view> ends);
  std::unique_ptr<Stmt> statement();
  std::unique_ptr<Stmt> branch();
  std::unique_ptr<Stmt> loop();
  std::unique_ptr<Stmt> set();
  std::unique_ptr<Stmt> macro();
  std::unique_ptr<Stmt> call_block();
  std::unique_ptr<Stmt> filter_block();
  std::unique_ptr<Stmt> with_block();
  void parameters(MacroDef& macro);
  ExprPtr target();
  ExprPtr target_item();
  void block_end();
  void end_tag();  // the name of the tag that ended a body, and its "%}"

  // Expressions (parser_expr.cpp).
  ExprPtr tuple(bool conditional = true, std::string_view end_name = {});
  ExprPtr expression();
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool filters = true);
  ExprPtr primary();
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr node);
  ExprPtr filters(ExprPtr node, bool pipe_taken = false);
  ExprPtr test(ExprPtr node);
  ExprPtr subscript(ExprPtr node);
  ExprPtr slice_part();
  void arguments(Expr& node);

  ExprPtr make(ExprKind kind) const;
  ExprPtr make(ExprKind kind, ExprPtr a, ExprPtr b = nullptr);
  void adopt(Expr& node, ExprPtr kid);  // takes the kid and its depth

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool take_op(std::string_view op);
  bool take_name(std::string_view name);
  void want_op(std::string_view op);
  std::string want_name(std::string_view what);
  void fail(std::string text, int line = 0);
  bool failed() const { return failed_; }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t nesting_ = 0;
  uint32_t loops_ = 0;
  MacroDef* macro_ = nullptr;
  Template out_;
  bool failed_ = false;
  Error error_;

  struct Nest {
    explicit Nest(Parser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxSyntaxDepth) parser_.fail("nested too deeply");
    }
    ~Nest() { --parser_.nesting_; }
    Parser& parser_;
  };
};

}  // namespace tern::jinja
