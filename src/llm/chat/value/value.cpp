#include "llm/chat/value/value.h"

#include <algorithm>

namespace tern::jinja {
namespace {
constexpr size_t kIndexFrom = 8;

bool equal_lists(const List& a, const List& b) {
  return a.tuple == b.tuple && a.items.size() == b.items.size() &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  return std::all_of(a.items.begin(), a.items.end(), [&](const Pair& item) {
    const Value* other = b.find(item.first);
    return other != nullptr && equal(item.second, *other);
  });
}
}  // namespace

size_t Dict::position(const Value& key) const {
  if (key.is_string() && !index_.empty()) {
    const auto it = index_.find(key.string());
    return it == index_.end() ? items.size() : it->second;
  }
  size_t i = 0;
  while (i < items.size() && !equal(items[i].first, key)) ++i;
  return i;
}

const Value* Dict::find(const Value& key) const {
  const size_t i = position(key);
  return i < items.size() ? &items[i].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (!index_.empty()) {
    const auto it = index_.find(std::string(key));
    return it == index_.end() ? nullptr : &items[it->second].second;
  }
  for (const Pair& item : items)
    if (item.first.is_string() && item.first.string() == key) return &item.second;
  return nullptr;
}

void Dict::set(Value key, Value value) {
  depth = std::max({depth, 1 + depth_of(key), 1 + depth_of(value)});
  const size_t i = position(key);
  if (i < items.size()) {
    items[i].second = std::move(value);
    return;
  }
  items.emplace_back(std::move(key), std::move(value));
  if (items.size() < kIndexFrom) return;
  for (size_t k = items.size() == kIndexFrom ? 0 : i; k < items.size(); ++k)
    if (items[k].first.is_string()) index_.emplace(items[k].first.string(), k);
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& item : items)
    if (item.first == name) return &item.second;
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& item : items)
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  items.emplace_back(name, std::move(value));
}

uint32_t depth_of(const Value& value) {
  if (value.is(Kind::list)) return value.list().depth;
  if (value.is(Kind::dict)) return value.dict().depth;
  return 0;
}

Value make_list(std::vector<Value> items, bool tuple) {
  auto list = std::make_shared<List>();
  for (const Value& item : items) list->depth = std::max(list->depth, 1 + depth_of(item));
  list->items = std::move(items);
  list->tuple = tuple;
  return Value(std::shared_ptr<const List>(std::move(list)));
}

Value make_dict(Dict dict) { return Value(std::shared_ptr<const Dict>(std::make_shared<Dict>(std::move(dict)))); }

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean:
    case Kind::integer:
    case Kind::real: return value.number() != 0;
    case Kind::string: return !value.string().empty();
    case Kind::list: return !value.list().items.empty();
    case Kind::dict: return !value.dict().items.empty();
    case Kind::function:
    case Kind::space:
    case Kind::loop: return true;
  }
  return false;
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.is(Kind::real) || b.is(Kind::real) ? a.number() == b.number() : a.integer() == b.integer();
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none: return true;
    case Kind::string: return a.string() == b.string();
    case Kind::list: return &a.list() == &b.list() || equal_lists(a.list(), b.list());
    case Kind::dict: return &a.dict() == &b.dict() || equal_dicts(a.dict(), b.dict());
    case Kind::function: return &a.function() == &b.function();
    case Kind::space: return a.space() == b.space();
    case Kind::loop: return a.loop() == b.loop();
    case Kind::boolean:
    case Kind::integer:
    case Kind::real: break;  // numbers: above
  }
  return false;
}

bool hashable(const Value& value) {
  if (value.is(Kind::dict)) return false;
  if (!value.is(Kind::list)) return true;
  return value.list().tuple && std::all_of(value.list().items.begin(), value.list().items.end(), hashable);
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return "undefined";
    case Kind::none: return "None";
    case Kind::boolean: return "bool";
    case Kind::integer: return "int";
    case Kind::real: return "float";
    case Kind::string: return "str";
    case Kind::list: return value.list().tuple ? "tuple" : "list";
    case Kind::dict: return "dict";
    case Kind::function: return "function";
    case Kind::space: return "namespace";
    case Kind::loop: return "loop";
  }
  return "value";
}

size_t weight(const Value& value, size_t limit) {
  size_t sum = 16;
  if (value.is_string()) return sum + value.string().size();
  if (value.is(Kind::list))
    for (const Value& item : value.list().items)
      if ((sum += weight(item, limit)) > limit) return sum;
  if (value.is(Kind::dict))
    for (const Pair& item : value.dict().items)
      if ((sum += weight(item.first, limit) + weight(item.second, limit)) > limit) return sum;
  return sum;
}

}  // namespace tern::jinja
