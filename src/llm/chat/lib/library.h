// Filters, tests, methods and globals of the template language: rows of tables, found by name.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llm/chat/value/value.h"

namespace tern::jinja {

class Interp;

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// All report faults through Interp::fail and then return anything.
struct Filter {
  std::string_view name;
  Value (*run)(Interp& in, const Value& self, Args& args);
};
struct Test {
  std::string_view name;
  bool (*run)(Interp& in, const Value& self, Args& args);
};
struct Method {
  std::string_view name;
  Value (*run)(Interp& in, const Value& self, Args& args);  // null: it would change its object, and is refused
};
struct Global {
  std::string_view name;
  Value (*run)(Interp& in, Args& args);
};

// Null where there is none of this name.
const Filter* find_filter(std::string_view name);
const Test* find_test(std::string_view name);
const Method* find_method(const Value& self, std::string_view name);
const Global* find_global(std::string_view name);

// Sorts the arguments into `out`, one for each name ("" names a parameter that is positional only). Absent ones stay
// undefined. False after reporting an argument too many or of an unknown name.
bool bind_args(Interp& in, std::string_view who, Args& args, std::initializer_list<std::string_view> names, Value* out);

// What the tables above are put together from (each in its file).
const Filter* find_text_filter(std::string_view name);
const Filter* find_sequence_filter(std::string_view name);
const Filter* find_number_filter(std::string_view name);

// printf-style formatting, as Python's '%' on strings: %s %r %d %i %f %e %g %x %o %c %%.
Value format_percent(Interp& in, const std::string& text, const Args& args);

struct Function {
  const Global* global = nullptr;
  const Method* method = nullptr;
  const struct MacroDef* macro = nullptr;
  struct Scope* scope = nullptr;  // where the macro was defined
  Value self;                     // the method's object
};

}  // namespace tern::jinja
