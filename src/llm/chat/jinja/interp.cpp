#include "llm/chat/jinja/interp.h"

#include <fmt/format.h>

#include <algorithm>

#include "llm/chat/jinja/lexer.h"

namespace tern::jinja {

Interp::Interp(const Template& source, const Limits& limits, std::optional<Clock> clock)
    : source_(source), limits_(limits), clock_(clock) {
  scope_ = push_scope(nullptr);
}

void Interp::define(const std::string& name, Value value) {
  if (const uint32_t* symbol = source_.symbols.find(name)) set(*symbol, std::move(value));
}

Result<std::string> Interp::run() {
  std::string out;
  out_ = &out;
  exec(source_.body);
  out_ = nullptr;
  if (error_) return std::move(*error_);
  return out;
}

Value Interp::fail(std::string text, Code code) {
  if (!error_) error_ = template_error(line_, std::move(text), code);
  return Value();
}

bool Interp::work(uint64_t units) {
  work_ += units;
  if (work_ > limits_.work) fail("the template does too much work", Code::limit);
  return !failed();
}

bool Interp::memory(uint64_t bytes) {
  memory_ += bytes;
  if (memory_ > limits_.memory_bytes) fail("the template makes too much text", Code::limit);
  return work(bytes);
}

Value Interp::text(std::string text) {
  if (!memory(text.size() + 64)) return Value();
  return Value(std::move(text));
}

Value Interp::list(std::vector<Value> items, bool tuple) {
  if (!memory(items.size() * sizeof(Value) + 64)) return Value();
  Value value = make_list(std::move(items), tuple);
  if (depth_of(value) > kMaxValueDepth) return fail("a list nests too deeply", Code::limit);
  return value;
}

Value Interp::dict(Dict dict) {
  if (!memory(dict.items.size() * 2 * sizeof(Value) + 64)) return Value();
  if (dict.depth > kMaxValueDepth) return fail("a dict nests too deeply", Code::limit);
  return make_dict(std::move(dict));
}

Namespace* Interp::make_namespace() {
  memory(128);
  spaces_.push_back(std::make_unique<Namespace>());
  return spaces_.back().get();
}

Scope* Interp::push_scope(Scope* parent) {
  memory(failed() ? 0 : 32);
  scopes_.push_back(std::make_unique<Scope>());
  scopes_.back()->parent = parent;
  return scopes_.back().get();
}

// Scopes nest, so the last one is the one to go; a macro made meanwhile may look into it for ever.
void Interp::pop_scope(Scope* scope, uint64_t captures) {
  std::unique_ptr<Scope> last = std::move(scopes_.back());
  scopes_.pop_back();
  scope_ = scope;
  if (captures == captures_) return;
  memory(256);
  kept_scopes_.push_back(std::move(last));
}

void Interp::set(uint32_t symbol, Value value) {
  work(scope_->vars.size());
  for (auto& var : scope_->vars)
    if (var.first == symbol) {
      var.second = std::move(value);
      return;
    }
  memory(64);
  scope_->vars.emplace_back(symbol, std::move(value));
}

void Interp::emit(std::string_view text) {
  if (!work(text.size())) return;
  written_ += text.size();
  if (written_ > limits_.output_bytes) {
    fail("the template writes too much", Code::limit);
    return;
  }
  out_->append(text);
}

std::string Interp::captured(const Body& body) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  exec(body);
  out_ = outer;
  return text;
}

Interp::Flow Interp::exec(const Body& body) {
  const Depth depth(*this);
  for (const auto& stmt : body) {
    if (failed()) return Flow::broken;
    const Flow flow = exec(*stmt);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Interp::Flow Interp::exec(const Stmt& stmt) {
  line_ = stmt.line;
  if (!work(16)) return Flow::broken;
  switch (stmt.kind) {
    case StmtKind::text: emit(stmt.text); break;
    case StmtKind::output: {
      const Value value = eval(*stmt.expr);
      if (failed()) break;
      if (value.is_string())
        emit(value.string());
      else if (work(weigh(value)))
        emit(to_text(value));
      break;
    }
    case StmtKind::branch:
      for (const auto& [condition, body] : stmt.branches) {
        const bool taken = truthy(eval(*condition));
        if (failed()) return Flow::broken;
        if (taken) return exec(body);
      }
      return exec(stmt.otherwise);
    case StmtKind::loop: return exec_loop(stmt);
    case StmtKind::set: assign(*stmt.target, eval(*stmt.expr)); break;
    case StmtKind::capture: {
      Value value = text(captured(stmt.body));
      if (stmt.expr) value = eval_block_filter(*stmt.expr, value);
      assign(*stmt.target, value);
      break;
    }
    case StmtKind::macro: assign(*stmt.target, macro_value(*stmt.macro)); break;
    case StmtKind::call: {
      const Value value = call_caller(stmt);
      if (!failed()) emit(to_text(value));
      break;
    }
    case StmtKind::filter: {
      const Value value = eval_block_filter(*stmt.expr, text(captured(stmt.body)));
      if (!failed() && work(weigh(value))) emit(to_text(value));
      break;
    }
    case StmtKind::with: return exec_with(stmt);
    case StmtKind::scope: return exec(stmt.body);
    case StmtKind::break_loop: return Flow::broken;
    case StmtKind::continue_loop: return Flow::continued;
  }
  return failed() ? Flow::broken : Flow::next;
}

Interp::Flow Interp::exec_with(const Stmt& stmt) {
  std::vector<Value> values;  // of the outer scope
  for (const auto& binding : stmt.bindings) values.push_back(eval(*binding.second));
  Scope* outer = scope_;
  const uint64_t captures = captures_;
  scope_ = push_scope(outer);
  for (size_t i = 0; i < values.size() && !failed(); ++i) assign(*stmt.bindings[i].first, values[i]);
  const Flow flow = exec(stmt.body);
  pop_scope(outer, captures);
  return flow;
}

// The items to walk, those that the loop's condition refuses left out.
bool Interp::loop_items(const Stmt& stmt, std::vector<Value>& items) {
  std::vector<Value> all;
  if (!iterate(eval(*stmt.expr), all) || !memory(all.size() * sizeof(Value))) return false;
  if (!stmt.condition) {
    items = std::move(all);
    return true;
  }
  Scope* outer = scope_;
  for (Value& item : all) {
    scope_ = push_scope(outer);
    assign(*stmt.target, item);
    const bool wanted = truthy(eval(*stmt.condition));
    pop_scope(outer, captures_);
    if (failed()) return false;
    if (wanted) items.push_back(std::move(item));
  }
  return true;
}

Interp::Flow Interp::exec_loop(const Stmt& stmt) {
  std::vector<Value> items;
  if (!loop_items(stmt, items)) return Flow::broken;
  if (items.empty()) return exec(stmt.otherwise);
  if (!memory(128)) return Flow::broken;
  loops_.push_back(std::make_unique<Loop>());
  Loop* const loop = loops_.back().get();
  auto list = std::make_shared<List>();
  list->items = std::move(items);
  loop->items = std::move(list);
  Scope* outer = scope_;
  for (loop->index = 0; loop->index < loop->items->items.size(); ++loop->index) {
    const uint64_t captures = captures_;
    scope_ = push_scope(outer);
    set(source_.loop_symbol, Value(loop));
    assign(*stmt.target, loop->items->items[loop->index]);
    const Flow flow = exec(stmt.body);
    pop_scope(outer, captures);
    if (failed() || flow == Flow::broken) break;
  }
  return failed() ? Flow::broken : Flow::next;
}

void Interp::assign(const Expr& target, const Value& value) {
  if (failed()) return;
  if (target.kind == ExprKind::name) return set(target.symbol, value);
  if (target.kind == ExprKind::attribute) {
    const Value space = eval(*target.kids[0]);
    if (failed()) return;
    if (!space.is(Kind::space)) {
      fail(
          fmt::format("cannot set \"{}.{}\": {} is no namespace", target.kids[0]->text, target.text, type_name(space)));
      return;
    }
    if (memory(64) && work(space.space()->items.size())) space.space()->set(target.text, value);
    return;
  }
  std::vector<Value> parts;
  if (!iterate(value, parts)) return;
  if (parts.size() != target.kids.size()) {
    fail(fmt::format("cannot unpack {} values into {} names", parts.size(), target.kids.size()));
    return;
  }
  for (size_t i = 0; i < parts.size(); ++i) assign(*target.kids[i], parts[i]);
}

Value Interp::macro_value(const MacroDef& macro) {
  if (!memory(128)) return Value();
  ++captures_;
  auto function = std::make_shared<Function>();
  function->macro = &macro;
  function->scope = scope_;
  return Value(std::shared_ptr<const Function>(std::move(function)));
}

Value Interp::call_macro(const Function& function, Args& args) {
  const MacroDef& macro = *function.macro;
  const Depth depth(*this);
  if (failed()) return Value();
  Scope* const caller = scope_;
  const uint64_t captures = captures_;
  scope_ = push_scope(function.scope);
  size_t given = 0;
  for (const Parameter& parameter : macro.parameters) {
    const auto named =
        std::find_if(args.named.begin(), args.named.end(), [&](const auto& a) { return a.first == parameter.name; });
    if (given < args.positional.size()) {
      if (named != args.named.end()) fail(fmt::format("the macro {} got \"{}\" twice", macro.name, parameter.name));
      set(parameter.symbol, args.positional[given++]);
    } else if (named != args.named.end()) {
      set(parameter.symbol, named->second);
      args.named.erase(named);
    } else {
      set(parameter.symbol, parameter.fallback ? eval(*parameter.fallback) : Value::undefined(parameter.name));
    }
  }
  const auto block =
      std::find_if(args.named.begin(), args.named.end(), [](const auto& a) { return a.first == "caller"; });
  if (block != args.named.end()) {
    set(source_.caller_symbol, block->second);
    args.named.erase(block);
  }
  if (macro.takes_more) {
    set(source_.varargs_symbol,
        list({args.positional.begin() + static_cast<ptrdiff_t>(given), args.positional.end()}, true));
  } else if (given < args.positional.size()) {
    fail(fmt::format("the macro {} takes {} arguments, not {}", macro.name, macro.parameters.size(),
                     args.positional.size()));
  }
  if (macro.takes_named) {
    Dict rest;
    for (auto& [name, value] : args.named) rest.set(Value(name), std::move(value));
    set(source_.kwargs_symbol, dict(std::move(rest)));
  } else if (!args.named.empty()) {
    fail(fmt::format("the macro {} takes no argument \"{}\"", macro.name, args.named.front().first));
  }
  std::string result = failed() ? std::string() : captured(macro.body);
  pop_scope(caller, captures);
  return text(std::move(result));
}

}  // namespace tern::jinja
