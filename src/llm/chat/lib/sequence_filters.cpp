// Filters on lists and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/utf8.h"
#include "llm/chat/jinja/interp.h"
#include "llm/chat/lib/library.h"
#include "llm/chat/value/text.h"

namespace tern::jinja {
namespace {

// "a.b.0" -> items and attributes, one after the other; `fallback`, where it is defined, stands in for an undefined
// step.
Value path(Interp& in, Value value, const Value& where, const Value& fallback = Value()) {
  if (where.is_integral()) return in.item(value, where);
  if (!where.is_string()) return in.fail("an attribute wants a name");
  for (const std::string_view part : split(where.string(), ".", -1)) {
    int64_t index = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = parsed.ec == std::errc() && parsed.ptr == part.data() + part.size();
    value = in.item(value, number ? Value(index) : Value(part));
    if (in.failed()) return Value();
    if (value.is_undefined() && !fallback.is_undefined() && !fallback.is_none()) value = fallback;
  }
  return value;
}

// Text folded for comparing, where case does not count.
Value folded(const Value& value, bool case_sensitive) {
  return value.is_string() && !case_sensitive ? Value(lower(value.string())) : value;
}

// Sorted positions of keys: stable, so that equal ones keep their order.
std::vector<size_t> order_of(Interp& in, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = 1; i < keys.size() && !in.failed(); ++i) in.order(keys[i - 1], keys[i]);  // all comparable?
  if (in.failed() || !in.work(keys.size() * 64)) return order;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? in.order(keys[b], keys[a]) < 0 : in.order(keys[a], keys[b]) < 0;
  });
  return order;
}

Value sort(Interp& in, const Value& self, Args& args) {
  Value v[3];
  std::vector<Value> items;
  if (!bind_args(in, "sort", args, {"reverse", "case_sensitive", "attribute"}, v) || !in.iterate(self, items))
    return Value();
  std::vector<Value> keys;
  for (const Value& item : items) {
    if (!v[2].is_string()) {
      keys.push_back(folded(v[2].is_undefined() || v[2].is_none() ? item : path(in, item, v[2]), truthy(v[1])));
      continue;
    }
    std::vector<Value> parts;  // "a,b": by the one, then by the other
    for (const std::string_view part : split(v[2].string(), ",", -1))
      parts.push_back(folded(path(in, item, Value(part)), truthy(v[1])));
    keys.push_back(parts.size() == 1 ? parts[0] : in.list(std::move(parts)));
  }
  std::vector<Value> out;
  for (const size_t i : order_of(in, keys, truthy(v[0]))) out.push_back(items[i]);
  return in.list(std::move(out));
}

Value dict_sort(Interp& in, const Value& self, Args& args) {
  Value v[3];
  if (!bind_args(in, "dictsort", args, {"case_sensitive", "by", "reverse"}, v)) return Value();
  if (!self.is(Kind::dict)) return in.fail(fmt::format("dictsort wants a dict, not {}", type_name(self)));
  const bool by_value = v[1].is_string() && v[1].string() == "value";
  std::vector<Value> keys, out;
  for (const Pair& pair : self.dict().items) keys.push_back(folded(by_value ? pair.second : pair.first, truthy(v[0])));
  for (const size_t i : order_of(in, keys, truthy(v[2])))
    out.push_back(in.list({self.dict().items[i].first, self.dict().items[i].second}, true));
  return in.list(std::move(out));
}

Value items(Interp& in, const Value& self, Args&) {
  if (self.is_undefined()) return in.list({});
  if (!self.is(Kind::dict)) return in.fail(fmt::format("items wants a dict, not {}", type_name(self)));
  std::vector<Value> out;
  for (const Pair& pair : self.dict().items) out.push_back(in.list({pair.first, pair.second}, true));
  return in.list(std::move(out));
}

Value length(Interp& in, const Value& self, Args&) {
  if (self.is_string()) return Value(code_count(self.string()));
  if (self.is(Kind::list)) return Value(static_cast<int64_t>(self.list().items.size()));
  if (self.is(Kind::dict)) return Value(static_cast<int64_t>(self.dict().items.size()));
  if (self.is_undefined()) return Value(int64_t{0});
  return in.fail(fmt::format("a {} has no length", type_name(self)));
}

Value first(Interp& in, const Value& self, Args&) {
  std::vector<Value> all;
  return in.iterate(self, all) && !all.empty() ? all.front() : Value();
}
Value last(Interp& in, const Value& self, Args&) {
  std::vector<Value> all;
  return in.iterate(self, all) && !all.empty() ? all.back() : Value();
}
Value list(Interp& in, const Value& self, Args&) {
  std::vector<Value> all;
  return in.iterate(self, all) ? in.list(std::move(all)) : Value();
}
Value reverse(Interp& in, const Value& self, Args&) {
  std::vector<Value> all;
  if (!in.iterate(self, all)) return Value();
  std::reverse(all.begin(), all.end());
  if (!self.is_string()) return in.list(std::move(all));
  std::string out;
  for (const Value& character : all) out += character.string();
  return in.text(std::move(out));
}

Value join(Interp& in, const Value& self, Args& args) {
  Value v[2];
  std::vector<Value> all;
  if (!bind_args(in, "join", args, {"d", "attribute"}, v) || !in.iterate(self, all)) return Value();
  const std::string separator = to_text(v[0]);
  if (!in.memory(separator.size() * all.size())) return Value();
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0) out += separator;
    const Value item = v[1].is_undefined() || v[1].is_none() ? all[i] : path(in, all[i], v[1]);
    if (in.failed()) return Value();
    out += to_text(item);
  }
  return in.text(std::move(out));
}

Value extreme(Interp& in, const Value& self, Args& args, bool largest) {
  Value v[2];
  std::vector<Value> all;
  if (!bind_args(in, "min and max", args, {"case_sensitive", "attribute"}, v) || !in.iterate(self, all) || all.empty())
    return Value();
  size_t best = 0;
  Value best_key;
  for (size_t i = 0; i < all.size() && !in.failed(); ++i) {
    const Value key = folded(v[1].is_undefined() || v[1].is_none() ? all[i] : path(in, all[i], v[1]), truthy(v[0]));
    if (i == 0 || (largest ? in.order(key, best_key) > 0 : in.order(key, best_key) < 0)) {
      best = i;
      best_key = key;
    }
  }
  return in.failed() ? Value() : all[best];
}
Value minimum(Interp& in, const Value& self, Args& args) { return extreme(in, self, args, false); }
Value maximum(Interp& in, const Value& self, Args& args) { return extreme(in, self, args, true); }

Value sum(Interp& in, const Value& self, Args& args) {
  Value v[2];
  std::vector<Value> all;
  if (!bind_args(in, "sum", args, {"attribute", "start"}, v) || !in.iterate(self, all)) return Value();
  Value total = v[1].is_undefined() ? Value(int64_t{0}) : v[1];
  for (const Value& item : all) {
    const Value part = v[0].is_undefined() || v[0].is_none() ? item : path(in, item, v[0]);
    if (in.failed()) return Value();
    total = in.arithmetic(Op::add, total, part);
  }
  return total;
}

Value unique(Interp& in, const Value& self, Args& args) {
  Value v[2];
  std::vector<Value> all, keys, out;
  if (!bind_args(in, "unique", args, {"case_sensitive", "attribute"}, v) || !in.iterate(self, all)) return Value();
  for (const Value& item : all) {
    const Value key = folded(v[1].is_undefined() || v[1].is_none() ? item : path(in, item, v[1]), truthy(v[0]));
    if (in.failed() || !in.work(in.weigh(key) + keys.size() * 4)) return Value();
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& known) { return equal(known, key); })) continue;
    keys.push_back(key);
    out.push_back(item);
  }
  return in.list(std::move(out));
}

Value batch(Interp& in, const Value& self, Args& args) {
  Value v[2];
  std::vector<Value> all, out;
  if (!bind_args(in, "batch", args, {"linecount", "fill_with"}, v) || !in.iterate(self, all)) return Value();
  if (!v[0].is_integral() || v[0].integer() < 1) return in.fail("batch wants a size above 0");
  const auto size = static_cast<size_t>(std::min<int64_t>(v[0].integer(), 1 << 20));
  for (size_t i = 0; i < all.size(); i += size) {
    std::vector<Value> row(all.begin() + static_cast<ptrdiff_t>(i),
                           all.begin() + static_cast<ptrdiff_t>(std::min(all.size(), i + size)));
    if (!v[1].is_undefined() && !v[1].is_none() && in.memory((size - row.size()) * sizeof(Value)))
      row.resize(size, v[1]);
    out.push_back(in.list(std::move(row)));
  }
  return in.list(std::move(out));
}

// map("filter", ...) and map(attribute="name", default=...)
Value map(Interp& in, const Value& self, Args& args) {
  std::vector<Value> all, out;
  if (!in.iterate(self, all)) return Value();
  if (args.positional.empty()) {
    Value v[2];
    if (!bind_args(in, "map", args, {"attribute", "default"}, v)) return Value();
    if (v[0].is_undefined()) return in.fail("map wants a filter or an attribute");
    for (const Value& item : all) {
      out.push_back(path(in, item, v[0], v[1]));
      if (in.failed()) return Value();
    }
    return in.list(std::move(out));
  }
  const Value name = args.positional.front();
  for (const Value& item : all) {
    Args rest{{args.positional.begin() + 1, args.positional.end()}, args.named};
    out.push_back(in.apply_filter(name, item, rest));
    if (in.failed()) return Value();
  }
  return in.list(std::move(out));
}

// select, reject (by a test of the item or its truth), selectattr, rejectattr (of an attribute).
Value choose(Interp& in, const Value& self, Args& args, bool wanted, bool by_attribute) {
  std::vector<Value> all, out;
  if (!in.iterate(self, all)) return Value();
  const size_t used = by_attribute ? 1 : 0;
  if (args.positional.size() < used) return in.fail("selectattr and rejectattr want an attribute");
  for (const Value& item : all) {
    const Value subject = by_attribute ? path(in, item, args.positional[0]) : item;
    if (in.failed()) return Value();
    bool holds = false;
    if (args.positional.size() > used) {
      Args rest{{args.positional.begin() + static_cast<ptrdiff_t>(used) + 1, args.positional.end()}, args.named};
      holds = in.apply_test(args.positional[used], subject, rest);
    } else {
      holds = truthy(subject);
    }
    if (in.failed()) return Value();
    if (holds == wanted) out.push_back(item);
  }
  return in.list(std::move(out));
}
Value select(Interp& in, const Value& self, Args& args) { return choose(in, self, args, true, false); }
Value reject(Interp& in, const Value& self, Args& args) { return choose(in, self, args, false, false); }
Value select_attr(Interp& in, const Value& self, Args& args) { return choose(in, self, args, true, true); }
Value reject_attr(Interp& in, const Value& self, Args& args) { return choose(in, self, args, false, true); }

constexpr Filter kFilters[] = {
    {"length", length},
    {"count", length},
    {"items", items},
    {"first", first},
    {"last", last},
    {"list", list},
    {"join", join},
    {"map", map},
    {"select", select},
    {"reject", reject},
    {"selectattr", select_attr},
    {"rejectattr", reject_attr},
    {"sort", sort},
    {"dictsort", dict_sort},
    {"reverse", reverse},
    {"unique", unique},
    {"min", minimum},
    {"max", maximum},
    {"sum", sum},
    {"batch", batch},
};

}  // namespace

const Filter* find_sequence_filter(std::string_view name) {
  const auto* it =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const Filter& f) { return f.name == name; });
  return it == std::end(kFilters) ? nullptr : it;
}

}  // namespace tern::jinja
