// Template text -> tokens, with the white-space rules of Jinja2 under trim_blocks and lstrip_blocks, as published chat
// templates expect them (transformers sets both).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tern/result.h"

namespace tern::jinja {

enum class TokenKind : uint8_t {
  data,
  block_begin,
  block_end,
  output_begin,
  output_end,
  name,
  string,
  integer,
  real,
  op,
  end
};

struct Token {
  TokenKind kind;
  std::string text;  // data, name, string (decoded), op
  int64_t integer = 0;
  double real = 0;
  int line = 1;

  bool is(TokenKind k) const { return kind == k; }
  bool is_op(std::string_view op) const { return kind == TokenKind::op && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

// The last token is `end`. Errors name the line.
Result<std::vector<Token>> lex(std::string_view source);

Error template_error(int line, std::string text, Code code = Code::malformed);

}  // namespace tern::jinja
