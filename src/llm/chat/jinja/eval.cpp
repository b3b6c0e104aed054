#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "llm/chat/jinja/interp.h"
#include "llm/chat/value/text.h"

namespace tern::jinja {
namespace {

// Stands for "not there" until the place that looked knows a better name.
const std::string kMissing = "the element";

// Start, count and step of Python's slice over `size` elements.
struct Span {
  int64_t start, count, step;
};
Span span_of(std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step, int64_t size) {
  const auto place = [&](std::optional<int64_t> at, int64_t fallback) {
    if (!at) return fallback;
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    const int64_t from_start = *at < 0 ? (*at < -size ? low : *at + size) : *at;
    return std::clamp(from_start, low, high);
  };
  const int64_t first = place(start, step > 0 ? 0 : size - 1);
  const int64_t end = place(stop, step > 0 ? size : -1);
  const int64_t gap = step > 0 ? end - first : first - end;
  const int64_t stride = step > 0 ? step : -step;
  return Span{first, gap <= 0 ? 0 : (gap - 1) / stride + 1, step};
}

}  // namespace

Value Interp::eval(const Expr& node) {
  const Depth depth(*this);
  line_ = node.line;
  if (!work(16)) return Value();
  switch (node.kind) {
    case ExprKind::constant: return node.value;
    case ExprKind::name: return eval_name(node);
    case ExprKind::list:
    case ExprKind::tuple: {
      std::vector<Value> items;
      items.reserve(node.kids.size());
      for (const ExprPtr& kid : node.kids) items.push_back(eval(*kid));
      return list(std::move(items), node.kind == ExprKind::tuple);
    }
    case ExprKind::dict: return eval_dict(node);
    case ExprKind::attribute: {
      const Value object = eval(*node.kids[0]);
      if (failed()) return Value();
      line_ = node.line;
      Value value = attribute(object, node.text);
      return value.is_undefined() ? Value::undefined(node.text) : std::move(value);
    }
    case ExprKind::item: {
      const Value object = eval(*node.kids[0]);
      const Value key = eval(*node.kids[1]);
      if (failed()) return Value();
      Value value = item(object, key);
      return value.is_undefined() && node.kids[1]->value.is_string() ? Value::undefined(node.kids[1]->value.string())
                                                                     : std::move(value);
    }
    case ExprKind::slice: return eval_slice(node);
    case ExprKind::call: return eval_call(node);
    case ExprKind::filter: return eval_filter(node, eval(*node.kids[0]));
    case ExprKind::test: return eval_test(node);
    case ExprKind::negate:
    case ExprKind::plus: return eval_sign(node);
    case ExprKind::logic_not: return Value(!truthy(eval(*node.kids[0])));
    case ExprKind::logic_and:
    case ExprKind::logic_or: {
      Value left = eval(*node.kids[0]);
      return truthy(left) == (node.kind == ExprKind::logic_or) ? left : eval(*node.kids[1]);
    }
    case ExprKind::arithmetic: {
      const Value a = eval(*node.kids[0]);
      const Value b = eval(*node.kids[1]);
      line_ = node.line;
      return failed() ? Value() : arithmetic(node.op, a, b);
    }
    case ExprKind::concat: return eval_concat(node);
    case ExprKind::compare: return eval_compare(node);
    case ExprKind::conditional:
      if (truthy(eval(*node.kids[0]))) return failed() ? Value() : eval(*node.kids[1]);
      return node.kids[2] && !failed() ? eval(*node.kids[2]) : Value();
  }
  return Value();
}

Value Interp::eval_name(const Expr& node) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    work(scope->vars.size());
    for (const auto& var : scope->vars)
      if (var.first == node.symbol) return var.second;
  }
  if (const Global* global = find_global(node.text); global != nullptr && (node.text != "strftime_now" || clock_)) {
    auto function = std::make_shared<Function>();
    function->global = global;
    return Value(std::shared_ptr<const Function>(std::move(function)));
  }
  return Value::undefined(node.text);
}

Value Interp::eval_dict(const Expr& node) {
  Dict out;
  for (size_t i = 0; i + 1 < node.kids.size(); i += 2) {
    Value key = eval(*node.kids[i]);
    Value value = eval(*node.kids[i + 1]);
    if (failed() || !work(weigh(key) * (key.is_string() ? 1 : out.items.size() + 1))) return Value();
    if (!hashable(key)) return fail(fmt::format("a {} cannot be a dict's key", type_name(key)));
    out.set(std::move(key), std::move(value));
  }
  return dict(std::move(out));
}

Value Interp::eval_sign(const Expr& node) {
  const Value value = eval(*node.kids[0]);
  if (failed()) return Value();
  if (!value.is_number()) return fail(fmt::format("a sign before a value of type {}", type_name(value)));
  if (node.kind == ExprKind::plus) return value.is(Kind::real) ? value : Value(value.integer());
  return value.is(Kind::real) ? Value(-value.number()) : arithmetic(Op::sub, Value(int64_t{0}), value);
}

Value Interp::eval_concat(const Expr& node) {
  std::string out;
  for (const ExprPtr& kid : node.kids) {
    const Value value = eval(*kid);
    if (failed() || !memory(weigh(value))) return Value();
    out += to_text(value);
  }
  return text(std::move(out));
}

Value Interp::eval_compare(const Expr& node) {
  Value left = eval(*node.kids[0]);
  for (size_t i = 0; i < node.ops.size(); ++i) {
    Value right = eval(*node.kids[i + 1]);
    if (failed()) return Value();
    line_ = node.line;
    if (!compare(node.ops[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

bool Interp::eval_args(const Expr& node, Args& args) {
  for (const ExprPtr& arg : node.args) args.positional.push_back(eval(*arg));
  if (node.star) {
    std::vector<Value> more;
    if (!iterate(eval(*node.star), more)) return false;
    args.positional.insert(args.positional.end(), more.begin(), more.end());
  }
  for (const auto& [name, arg] : node.named) args.named.emplace_back(name, eval(*arg));
  if (node.star_star) {
    const Value more = eval(*node.star_star);
    if (!failed() && !more.is(Kind::dict)) fail(fmt::format("\"**\" wants a dict, not {}", type_name(more)));
    if (failed()) return false;
    for (const Pair& pair : more.dict().items)
      if (pair.first.is_string()) args.named.emplace_back(pair.first.string(), pair.second);
  }
  line_ = node.line;
  return memory((args.positional.size() + args.named.size()) * sizeof(Value));
}

Value Interp::eval_call(const Expr& node) {
  const Expr& callee = *node.kids[0];
  Args args;
  if (callee.kind == ExprKind::attribute) {  // a method at once, without a value for it
    const Value object = eval(*callee.kids[0]);
    if (failed()) return Value();
    if (const Method* method = find_method(object, callee.text))
      return eval_args(node, args) ? call_method(*method, object, args) : Value();
    const Value function = attribute(object, callee.text);
    if (failed()) return Value();
    if (function.is_undefined())
      return fail(fmt::format("a {} has no method \"{}\"", type_name(object), printable(callee.text, 60)));
    return eval_args(node, args) ? call(function, args) : Value();
  }
  const Value function = eval(callee);
  if (failed() || !eval_args(node, args)) return Value();
  if (function.is_undefined())
    return fail(fmt::format("\"{}\" is undefined and cannot be called", printable(callee.text, 60)));
  return call(function, args);
}

// Filters of a block: the innermost one has no operand, it takes the block's text.
Value Interp::eval_block_filter(const Expr& node, const Value& text) {
  return eval_filter(node, node.kids[0] ? eval_block_filter(*node.kids[0], text) : text);
}

Value Interp::eval_filter(const Expr& node, const Value& self) {
  Args args;
  if (failed() || !eval_args(node, args)) return Value();
  if (node.filter == nullptr)
    return fail(fmt::format("there is no filter \"{}\"", printable(node.text, 60)), Code::unsupported);
  return work(weigh(self)) ? node.filter->run(*this, self, args) : Value();
}

Value Interp::eval_test(const Expr& node) {
  const Value self = eval(*node.kids[0]);
  Args args;
  if (failed() || !eval_args(node, args)) return Value();
  if (node.test == nullptr)
    return fail(fmt::format("there is no test \"{}\"", printable(node.text, 60)), Code::unsupported);
  return Value(node.test->run(*this, self, args));
}

Value Interp::eval_slice(const Expr& node) {
  const Value object = eval(*node.kids[0]);
  std::optional<int64_t> parts[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!node.kids[i + 1]) continue;
    const Value part = eval(*node.kids[i + 1]);
    if (failed()) return Value();
    if (part.is_integral())
      parts[i] = part.integer();
    else if (!part.is_none())
      return fail(fmt::format("a slice wants integers, not {}", type_name(part)));
  }
  if (failed()) return Value();
  const int64_t step = parts[2].value_or(1);
  if (step == 0) return fail("a slice's step is 0");
  if (step < -(int64_t{1} << 40) || step > (int64_t{1} << 40)) return fail("a slice's step is too large");
  if (object.is_string()) {
    const std::string& whole = object.string();
    if (!work(whole.size())) return Value();
    const auto pieces = characters(whole);
    const Span span = span_of(parts[0], parts[1], step, static_cast<int64_t>(pieces.size()));
    std::string out;
    for (int64_t i = 0; i < span.count; ++i) out += pieces[static_cast<size_t>(span.start + i * span.step)];
    return text(std::move(out));
  }
  if (object.is_undefined())
    return fail(fmt::format("\"{}\" is undefined",
                            printable(object.undefined_name() ? *object.undefined_name() : kMissing, 60)));
  if (!object.is(Kind::list)) return fail(fmt::format("a {} cannot be sliced", type_name(object)));
  const auto& items = object.list().items;
  const Span span = span_of(parts[0], parts[1], step, static_cast<int64_t>(items.size()));
  std::vector<Value> out;
  for (int64_t i = 0; i < span.count; ++i) out.push_back(items[static_cast<size_t>(span.start + i * span.step)]);
  return list(std::move(out), object.list().tuple);
}

Value Interp::attribute(const Value& object, std::string_view name) {
  if (name.starts_with("__"))
    return fail(fmt::format("the attribute \"{}\" is not for templates", printable(name, 60)));
  if (object.is_undefined()) {
    const std::string& what = object.undefined_name() ? *object.undefined_name() : kMissing;
    return fail(fmt::format("\"{}\" is undefined, it has no \"{}\"", printable(what, 60), printable(name, 60)));
  }
  if (const Method* method = find_method(object, name)) {
    if (method->run == nullptr)
      return fail(fmt::format("\"{}\" would change a {}, which templates may not", name, type_name(object)));
    auto function = std::make_shared<Function>();
    function->method = method;
    function->self = object;
    return Value(std::shared_ptr<const Function>(std::move(function)));
  }
  switch (object.kind()) {
    case Kind::dict: {
      work(std::min<size_t>(object.dict().items.size(), 16));
      const Value* value = object.dict().find(name);
      return value != nullptr ? *value : Value::undefined(kMissing);
    }
    case Kind::space: {
      work(object.space()->items.size());
      const Value* value = object.space()->find(name);
      return value != nullptr ? *value : Value::undefined(kMissing);
    }
    case Kind::loop: return loop_attribute(*object.loop(), name);
    case Kind::function: return fail(fmt::format("a function has no attribute \"{}\"", printable(name, 60)));
    default: return Value::undefined(kMissing);
  }
}

Value Interp::loop_attribute(const Loop& loop, std::string_view name) {
  const auto& items = loop.items->items;
  const auto index = static_cast<int64_t>(loop.index), count = static_cast<int64_t>(items.size());
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(count - index);
  if (name == "revindex0") return Value(count - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == count);
  if (name == "length") return Value(count);
  if (name == "depth") return Value(int64_t{1});  // counts the levels of recursive loops only
  if (name == "depth0") return Value(int64_t{0});
  if (name == "previtem") return index > 0 ? items[loop.index - 1] : Value::undefined(kMissing);
  if (name == "nextitem") return index + 1 < count ? items[loop.index + 1] : Value::undefined(kMissing);
  return fail(fmt::format("loop has no \"{}\"", printable(name, 60)));
}

Value Interp::item(const Value& object, const Value& key) {
  if (object.is_undefined()) {
    const std::string& what = object.undefined_name() ? *object.undefined_name() : kMissing;
    return fail(fmt::format("\"{}\" is undefined", printable(what, 60)));
  }
  if (object.is(Kind::dict)) {
    if (!work(key.is_string() ? 8 : weigh(key) * (object.dict().items.size() + 1))) return Value();
    if (const Value* value = object.dict().find(key)) return *value;
  }
  if ((object.is(Kind::list) || object.is_string()) && key.is_integral()) {
    const int64_t size =
        object.is_string() ? code_count(object.string()) : static_cast<int64_t>(object.list().items.size());
    const int64_t at = key.integer() < 0 ? key.integer() + size : key.integer();
    if (at < 0 || at >= size) return Value::undefined(kMissing);
    if (object.is(Kind::list)) return object.list().items[static_cast<size_t>(at)];
    if (!work(object.string().size())) return Value();
    const std::string_view rest = std::string_view(object.string()).substr(byte_of_code(object.string(), at));
    return text(std::string(rest.substr(0, byte_of_code(rest, 1))));
  }
  return key.is_string() ? attribute(object, key.string()) : Value::undefined(kMissing);
}

Value Interp::call_method(const Method& method, const Value& self, Args& args) {
  if (method.run == nullptr)
    return fail(fmt::format("\"{}\" would change a {}, which templates may not", method.name, type_name(self)));
  return work(16 + (self.is_string() ? self.string().size() : 0)) ? method.run(*this, self, args) : Value();
}

Value Interp::call(const Value& function, Args& args) {
  if (failed()) return Value();
  if (!function.is(Kind::function)) return fail(fmt::format("a {} cannot be called", type_name(function)));
  const Function& f = function.function();
  if (f.method != nullptr) return call_method(*f.method, f.self, args);
  if (f.global != nullptr) return f.global->run(*this, args);
  return call_macro(f, args);
}

Value Interp::call_caller(const Stmt& stmt) {
  const Expr& node = *stmt.expr;
  const Value function = eval(*node.kids[0]);
  Args args;
  if (failed() || !eval_args(node, args)) return Value();
  args.named.emplace_back("caller", macro_value(*stmt.macro));
  return call(function, args);
}

bool Interp::iterate(const Value& value, std::vector<Value>& out) {
  if (failed()) return false;
  switch (value.kind()) {
    case Kind::undefined: return true;
    case Kind::list: out = value.list().items; break;
    case Kind::dict:
      for (const Pair& pair : value.dict().items) out.push_back(pair.first);
      break;
    case Kind::string:
      if (!memory(value.string().size() * 80)) return false;
      for (const std::string_view character : characters(value.string())) out.emplace_back(character);
      break;
    default: fail(fmt::format("a {} cannot be iterated over", type_name(value))); return false;
  }
  return work(out.size() * 8);
}

Value Interp::apply_filter(const Value& name, const Value& self, Args& args) {
  const Filter* filter = name.is_string() ? find_filter(name.string()) : nullptr;
  if (filter == nullptr)
    return fail(fmt::format("there is no filter {}", printable(to_repr(name), 60)), Code::unsupported);
  return work(16 + weigh(self)) ? filter->run(*this, self, args) : Value();
}

bool Interp::apply_test(const Value& name, const Value& self, Args& args) {
  const Test* test = name.is_string() ? find_test(name.string()) : nullptr;
  if (test == nullptr)
    return fail(fmt::format("there is no test {}", printable(to_repr(name), 60)), Code::unsupported), false;
  return work(16) && test->run(*this, self, args);
}

}  // namespace tern::jinja
