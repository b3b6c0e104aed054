// Runs a parsed template over values.
//
// A sandbox: values hold data only, names with two leading underscores are refused, nothing reaches files, clocks or
// the process. Work, memory, output and depth are bounded, so that any template ends soon. The first error sticks;
// after it every step returns undefined at once, and run() reports it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llm/chat/jinja/ast.h"
#include "llm/chat/lib/library.h"
#include "tern/result.h"

namespace tern::jinja {

struct Limits {
  uint64_t work = 150'000'000;         // about 16 for a step and 1 for a byte looked at: a second or two
  uint64_t memory_bytes = 256u << 20;  // of all strings, lists and scopes ever made
  size_t output_bytes = size_t{16} << 20;
  uint32_t depth = 700;  // nested evaluations, macros within macros included
};

struct Clock {
  int64_t unix_seconds = 0;
  int32_t utc_offset_minutes = 0;
};

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<uint32_t, Value>> vars;
};

struct Loop {
  std::shared_ptr<const List> items;
  size_t index = 0;
  std::optional<std::vector<Value>> last_changed;
};

// One rendering. One thread.
class Interp {
 public:
  Interp(const Template& source, const Limits& limits, std::optional<Clock> clock);

  // A variable of the template; ignored where the template never names it.
  void define(const std::string& name, Value value);
  Result<std::string> run();

  // For the library.
  bool failed() const { return error_.has_value(); }
  Value fail(std::string text, Code code = Code::invalid);
  bool work(uint64_t units);    // false: the budget is used up, and that is the error
  bool memory(uint64_t bytes);  // likewise
  // What walking the value costs; where that is more than the whole budget, something above it.
  uint64_t weigh(const Value& value) const { return weight(value, limits_.work); }
  Value text(std::string text);
  Value list(std::vector<Value> items, bool tuple = false);
  Value dict(Dict dict);
  Namespace* make_namespace();
  const std::optional<Clock>& clock() const { return clock_; }

  Value attribute(const Value& object, std::string_view name);
  Value item(const Value& object, const Value& key);
  Value call(const Value& function, Args& args);
  // The items of a list, a dict (its keys), a string (its characters), nothing for undefined; else an error.
  bool iterate(const Value& value, std::vector<Value>& out);
  Value apply_filter(const Value& name, const Value& self, Args& args);
  bool apply_test(const Value& name, const Value& self, Args& args);
  bool contains(const Value& container, const Value& part);
  int order(const Value& a, const Value& b);  // negative, 0, positive; an error where Python has no order
  Value arithmetic(Op op, const Value& a, const Value& b);
  bool compare(Op op, const Value& a, const Value& b);

 private:
  enum class Flow : uint8_t { next, broken, continued };
  struct Depth {
    explicit Depth(Interp& in) : in_(in) {
      if (++in_.depth_ > in_.limits_.depth) in_.fail("the template nests too deeply", Code::limit);
    }
    ~Depth() { --in_.depth_; }
    Interp& in_;
  };

  // Statements (interp.cpp).
  Flow exec(const Body& body);
  Flow exec(const Stmt& stmt);
  Flow exec_loop(const Stmt& stmt);
  Flow exec_with(const Stmt& stmt);
  bool loop_items(const Stmt& stmt, std::vector<Value>& items);
  void assign(const Expr& target, const Value& value);
  void set(uint32_t symbol, Value value);
  void emit(std::string_view text);
  std::string captured(const Body& body);
  Value call_macro(const Function& function, Args& args);
  Value macro_value(const MacroDef& macro);
  Scope* push_scope(Scope* parent);
  void pop_scope(Scope* scope, uint64_t captures);

  // Expressions (eval.cpp).
  Value eval(const Expr& node);
  Value eval_name(const Expr& node);
  Value eval_slice(const Expr& node);
  Value eval_call(const Expr& node);
  Value eval_filter(const Expr& node, const Value& self);
  Value eval_block_filter(const Expr& node, const Value& text);
  Value eval_test(const Expr& node);
  Value eval_concat(const Expr& node);
  Value eval_compare(const Expr& node);
  Value eval_dict(const Expr& node);
  Value eval_sign(const Expr& node);
  bool eval_args(const Expr& node, Args& args);
  Value call_method(const Method& method, const Value& self, Args& args);
  Value call_caller(const Stmt& stmt);

  Value loop_attribute(const Loop& loop, std::string_view name);

  const Template& source_;
  const Limits limits_;
  const std::optional<Clock> clock_;
  std::optional<Error> error_;
  int line_ = 1;
  uint32_t depth_ = 0;
  uint64_t work_ = 0, memory_ = 0;
  uint64_t captures_ = 0;  // macros made so far: a scope that saw one stays
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<std::unique_ptr<Scope>> kept_scopes_;
  std::vector<std::unique_ptr<Namespace>> spaces_;
  std::vector<std::unique_ptr<Loop>> loops_;
  Scope* scope_ = nullptr;
  std::string* out_ = nullptr;
  size_t written_ = 0;
};

}  // namespace tern::jinja
