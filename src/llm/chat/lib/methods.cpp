// Methods of lists, dicts and loops; strings' are in string_methods.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "llm/chat/jinja/interp.h"
#include "llm/chat/lib/library.h"
#include "llm/chat/lib/string_methods.h"

namespace tern::jinja {
namespace {

Value dict_items(Interp& in, const Value& self, Args& args) {
  if (!bind_args(in, "items", args, {}, nullptr)) return Value();
  std::vector<Value> out;
  for (const Pair& pair : self.dict().items) out.push_back(in.list({pair.first, pair.second}, true));
  return in.list(std::move(out));
}
Value dict_keys(Interp& in, const Value& self, Args& args) {
  if (!bind_args(in, "keys", args, {}, nullptr)) return Value();
  std::vector<Value> out;
  for (const Pair& pair : self.dict().items) out.push_back(pair.first);
  return in.list(std::move(out));
}
Value dict_values(Interp& in, const Value& self, Args& args) {
  if (!bind_args(in, "values", args, {}, nullptr)) return Value();
  std::vector<Value> out;
  for (const Pair& pair : self.dict().items) out.push_back(pair.second);
  return in.list(std::move(out));
}
Value dict_get(Interp& in, const Value& self, Args& args) {
  Value v[2];
  if (!bind_args(in, "get", args, {"", ""}, v)) return Value();
  if (args.positional.empty()) return in.fail("get wants a key");
  if (!in.work(in.weigh(v[0]) * (v[0].is_string() ? 1 : self.dict().items.size() + 1))) return Value();
  const Value* value = self.dict().find(v[0]);
  if (value != nullptr) return *value;
  return args.positional.size() == 2 ? v[1] : Value::none();
}
Value copy(Interp&, const Value& self, Args&) { return self; }  // values never change, so the same one is a copy

Value list_count(Interp& in, const Value& self, Args& args) {
  Value v[1];
  if (!bind_args(in, "count", args, {""}, v) ||
      !in.work((in.weigh(v[0]) / 16 + 1) * self.list().items.size() + in.weigh(v[0])))
    return Value();
  return Value(static_cast<int64_t>(std::count_if(self.list().items.begin(), self.list().items.end(),
                                                  [&](const Value& item) { return equal(item, v[0]); })));
}
Value list_index(Interp& in, const Value& self, Args& args) {
  Value v[1];
  if (!bind_args(in, "index", args, {""}, v) ||
      !in.work((in.weigh(v[0]) / 16 + 1) * self.list().items.size() + in.weigh(v[0])))
    return Value();
  const auto& items = self.list().items;
  const auto it = std::find_if(items.begin(), items.end(), [&](const Value& item) { return equal(item, v[0]); });
  return it == items.end() ? in.fail("index: the list does not hold the value")
                           : Value(static_cast<int64_t>(it - items.begin()));
}

Value loop_cycle(Interp& in, const Value& self, Args& args) {
  if (args.positional.empty()) return in.fail("loop.cycle wants values");
  return args.positional[self.loop()->index % args.positional.size()];
}
Value loop_changed(Interp& in, const Value& self, Args& args) {
  auto& last = self.loop()->last_changed;
  for (const Value& value : args.positional)
    if (!in.work(in.weigh(value))) return Value();
  const bool same = last && last->size() == args.positional.size() &&
                    std::equal(last->begin(), last->end(), args.positional.begin(), equal);
  last = args.positional;
  return Value(!same);
}

constexpr Method kDict[] = {
    {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values}, {"get", dict_get},    {"copy", copy},
    {"pop", nullptr},      {"update", nullptr}, {"clear", nullptr},      {"popitem", nullptr}, {"setdefault", nullptr},
};
constexpr Method kList[] = {
    {"count", list_count}, {"index", list_index}, {"copy", copy},       {"append", nullptr},
    {"extend", nullptr},   {"insert", nullptr},   {"remove", nullptr},  {"pop", nullptr},
    {"clear", nullptr},    {"sort", nullptr},     {"reverse", nullptr},
};
constexpr Method kLoop[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};

template <size_t n>
const Method* in_table(const Method (&table)[n], std::string_view name) {
  const auto* it = std::find_if(table, table + n, [&](const Method& m) { return m.name == name; });
  return it == table + n ? nullptr : it;
}

}  // namespace

const Method* find_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Kind::string: return find_string_method(name);
    case Kind::dict: return in_table(kDict, name);
    case Kind::list: return in_table(kList, name);
    case Kind::loop: return in_table(kLoop, name);
    default: return nullptr;
  }
}

}  // namespace tern::jinja
