// A parsed template. Immutable: rendered by several threads at once.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "llm/chat/value/value.h"

namespace tern::jinja {

struct Filter;
struct Test;
struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

// How deep expressions and statements nest, also through chains (a.b.c, x|f|g, a + b + c).
inline constexpr uint32_t kMaxSyntaxDepth = 200;

enum class ExprKind : uint8_t {
  constant,   // value
  name,       // symbol
  list,       // kids
  tuple,      // kids
  dict,       // kids: key, value, key, value ...
  attribute,  // kids[0].text
  item,       // kids[0][kids[1]]
  slice,      // kids[0][kids[1] : kids[2] : kids[3]], the last three may be null
  call,       // kids[0](args)
  filter,     // kids[0] | text(args); kids[0] null: the body of a block
  test,       // kids[0] is text(args)
  negate,
  plus,
  logic_not,
  logic_and,
  logic_or,
  arithmetic,   // kids[0] op kids[1]
  concat,       // kids, as text
  compare,      // kids[0] ops[0] kids[1] ops[1] kids[2] ...
  conditional,  // kids: condition, then, else (may be null)
};

enum class Op : uint8_t { add, sub, mul, div, floordiv, mod, pow, eq, ne, lt, le, gt, ge, in, not_in };

struct Expr {
  ExprKind kind;
  int line = 0;
  uint32_t depth = 1;
  Op op = Op::add;
  uint32_t symbol = 0;
  std::string text;  // name, attribute, filter, test
  Value value;
  std::vector<ExprPtr> kids;
  std::vector<Op> ops;
  // Arguments of call, filter and test.
  std::vector<ExprPtr> args;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star, star_star;
  const Filter* filter = nullptr;  // null: there is none of this name, an error where it is used
  const Test* test = nullptr;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Parameter {
  std::string name;
  uint32_t symbol = 0;
  ExprPtr fallback;  // may be null
};

struct MacroDef {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  bool takes_more = false, takes_named = false;  // the body reads varargs, kwargs
};

enum class StmtKind : uint8_t {
  text,     // text
  output,   // expr
  branch,   // branches, otherwise
  loop,     // for target in expr if condition: body, else otherwise
  set,      // target = expr
  capture,  // target = body, through filter `expr` where there is one
  macro,
  call,    // expr, with macro as `caller`
  filter,  // body through expr
  with,    // bindings, body
  scope,   // body as it is (generation)
  break_loop,
  continue_loop,
};

struct Stmt {
  StmtKind kind;
  int line = 0;
  std::string text;
  ExprPtr expr, condition, target;  // target: name, tuple of them, or attribute of a name
  Body body, otherwise;
  std::vector<std::pair<ExprPtr, Body>> branches;
  std::vector<std::pair<ExprPtr, ExprPtr>> bindings;
  std::unique_ptr<MacroDef> macro;
};

// Names are numbered once, so that scopes compare numbers.
class Symbols {
 public:
  uint32_t number(const std::string& name) {
    return numbers_.try_emplace(name, static_cast<uint32_t>(numbers_.size())).first->second;
  }
  const uint32_t* find(const std::string& name) const {
    const auto it = numbers_.find(name);
    return it == numbers_.end() ? nullptr : &it->second;
  }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
};

struct Template {
  Body body;
  Symbols symbols;
  uint32_t loop_symbol = 0, caller_symbol = 0, varargs_symbol = 0, kwargs_symbol = 0;
};

}  // namespace tern::jinja
