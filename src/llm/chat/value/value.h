// The values of a chat template: what Python would call them, immutable but for namespaces.
//
// Strings are UTF-8 and well formed (whatever enters is repaired), lengths and indices count code points as Python
// does. Lists and dicts are shared and never change, so values form no cycles; namespaces, loops and scopes, which
// could, belong to the interpreter and are referred to by plain pointers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace tern::jinja {

struct List;
struct Dict;
struct Function;
struct Namespace;
struct Loop;

enum class Kind : uint8_t { undefined, none, boolean, integer, real, string, list, dict, function, space, loop };

class Value {
 public:
  // Undefined carries the name that was looked for; the string outlives the value (it is the template's).
  struct Undefined {
    const std::string* name;
  };

  Value() : v_(Undefined{nullptr}) {}
  static Value undefined(const std::string& name) {
    Value value;
    value.v_.emplace<Undefined>(Undefined{&name});
    return value;
  }
  static Value none() {
    Value value;
    value.v_.emplace<std::monostate>();
    return value;
  }
  Value(bool v) : v_(v) {}
  Value(int64_t v) : v_(v) {}
  Value(double v) : v_(v) {}
  Value(std::string text) : v_(std::make_shared<const std::string>(std::move(text))) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::shared_ptr<const List> list) : v_(std::move(list)) {}
  Value(std::shared_ptr<const Dict> dict) : v_(std::move(dict)) {}
  Value(std::shared_ptr<const Function> function) : v_(std::move(function)) {}
  Value(Namespace* space) : v_(space) {}
  Value(Loop* loop) : v_(loop) {}

  Kind kind() const { return static_cast<Kind>(v_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_undefined() const { return is(Kind::undefined); }
  bool is_none() const { return is(Kind::none); }
  bool is_string() const { return is(Kind::string); }
  bool is_number() const { return is(Kind::boolean) || is(Kind::integer) || is(Kind::real); }
  bool is_integral() const { return is(Kind::boolean) || is(Kind::integer); }  // Python's bool is an int

  // Each only where kind() says so.
  bool boolean() const { return *std::get_if<bool>(&v_); }
  int64_t integer() const { return is(Kind::boolean) ? int64_t{boolean()} : *std::get_if<int64_t>(&v_); }
  double number() const { return is(Kind::real) ? *std::get_if<double>(&v_) : static_cast<double>(integer()); }
  const std::string& string() const { return **std::get_if<std::shared_ptr<const std::string>>(&v_); }
  const List& list() const { return **std::get_if<std::shared_ptr<const List>>(&v_); }
  const Dict& dict() const { return **std::get_if<std::shared_ptr<const Dict>>(&v_); }
  const std::shared_ptr<const List>& shared_list() const { return *std::get_if<std::shared_ptr<const List>>(&v_); }
  const Function& function() const { return **std::get_if<std::shared_ptr<const Function>>(&v_); }
  Namespace* space() const { return *std::get_if<Namespace*>(&v_); }
  Loop* loop() const { return *std::get_if<Loop*>(&v_); }
  const std::string* undefined_name() const { return std::get_if<Undefined>(&v_)->name; }

 private:
  using Storage = std::variant<Undefined, std::monostate, bool, int64_t, double, std::shared_ptr<const std::string>,
                               std::shared_ptr<const List>, std::shared_ptr<const Dict>,
                               std::shared_ptr<const Function>, Namespace*, Loop*>;
  Storage v_;
};

using Pair = std::pair<Value, Value>;

// How deep values nest is bounded, so that walking one cannot exhaust the stack.
inline constexpr uint32_t kMaxValueDepth = 128;

struct List {
  std::vector<Value> items;
  bool tuple = false;
  uint32_t depth = 1;  // 1 + the deepest item's
};

// Keeps the order of insertion; a later value of an equal key replaces the earlier one.
struct Dict {
  std::vector<Pair> items;
  uint32_t depth = 1;

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);

 private:
  size_t position(const Value& key) const;
  std::unordered_map<std::string, size_t> index_;  // string keys, once there are more than a few
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> items;
  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

uint32_t depth_of(const Value& value);
Value make_list(std::vector<Value> items, bool tuple = false);  // does not check the depth
Value make_dict(Dict dict);

bool truthy(const Value& value);
bool equal(const Value& a, const Value& b);
bool hashable(const Value& value);  // may be a dict's key
// "str", "int", "dict" ...: Python's names, for messages.
std::string_view type_name(const Value& value);

// Python's str() and repr().
std::string to_text(const Value& value);
std::string to_repr(const Value& value);
std::string real_text(double value);  // the shortest form that reads back, as Python prints it
// What walking the value costs, in bytes: shared parts count every time they are met. Stops counting above `limit`.
size_t weight(const Value& value, size_t limit);

}  // namespace tern::jinja
