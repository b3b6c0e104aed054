// JSON in and out of template values.
#pragma once

#include "llm/chat/value/value.h"
#include "tern/result.h"

namespace tern::jinja {

// One JSON value (RFC 8259). Integers that do not fit in 64 bits become floats. Ill-formed UTF-8 becomes U+FFFD. `what`
// names the text in errors.
Result<Value> parse_json(std::string_view text, std::string_view what);

struct JsonStyle {
  int64_t indent = -1;  // spaces a level; negative: one line
  std::string item_separator = ", ", key_separator = ": ";
  bool ascii = false;  // write other characters as \uXXXX
  bool sort_keys = false;
};
// As Python's json.dumps does. Fails on values that JSON has no form for.
Result<std::string> dump_json(const Value& value, const JsonStyle& style = {});

}  // namespace tern::jinja
