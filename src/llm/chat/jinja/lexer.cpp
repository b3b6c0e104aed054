#include "llm/chat/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "llm/chat/value/text.h"

namespace tern::jinja {
namespace {

constexpr size_t npos = std::string_view::npos;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<uint8_t>(c) >= 0x80;
}
bool name_char(char c) { return name_start(c) || digit(c); }

// One kind of line end, and no line end at the very end (keep_trailing_newline is off).
std::string normalised(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(source) {}

  Result<std::vector<Token>> run() {
    while (at_ < text_.size() && !failed_) section();
    if (failed_) return template_error(error_line_, error_);
    push(TokenKind::end);
    return std::move(tokens_);
  }

 private:
  void fail(int line, std::string text) {
    if (failed_) return;
    failed_ = true;
    error_ = std::move(text);
    error_line_ = line;
  }
  void push(TokenKind kind, std::string text = {}) {
    Token token{kind, std::move(text)};
    token.line = line_;
    tokens_.push_back(std::move(token));
  }
  // Moves on, counting lines.
  void advance(size_t to) {
    line_ += static_cast<int>(
        std::count(text_.begin() + static_cast<ptrdiff_t>(at_), text_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    at_ = to;
  }
  bool has(size_t at, std::string_view what) const { return text_.substr(at).starts_with(what); }
  size_t skip_space(size_t at) const {
    while (at < text_.size()) {
      size_t next = at;
      if (!is_space(next_code(text_, next))) break;
      at = next;
    }
    return at;
  }

  // Text before a tag: '-' takes all white space before it, lstrip_blocks that from the line's start on.
  void data(size_t end, char sign, bool is_output) {
    std::string_view text = text_.substr(at_, end - at_);
    if (sign == '-') {
      text = strip(text, {}, Side::right);
    } else if (sign != '+' && !is_output) {
      const size_t newline = text.rfind('\n');
      const size_t line = newline == npos ? 0 : newline + 1;
      if ((line > 0 || line_starting_) && line < text.size() && strip(text.substr(line)).empty())
        text = text.substr(0, line);
    }
    if (!text.empty()) push(TokenKind::data, std::string(text));
    advance(end);
  }

  // Moves past a tag's end at `end` (its first character, a sign or the closing itself).
  void close(size_t end, bool trims) {
    const char sign = text_[end] == '-' || text_[end] == '+' ? text_[end] : '\0';
    size_t to = end + (sign != '\0' ? 1 : 0) + 2;
    if (sign == '-')
      to = skip_space(to);
    else if (sign == '\0' && trims && to < text_.size() && text_[to] == '\n')
      ++to;
    advance(to);
    line_starting_ = at_ > 0 && text_[at_ - 1] == '\n';
  }

  void section() {
    size_t begin = at_;
    while ((begin = text_.find('{', begin)) != npos && !has(begin, "{{") && !has(begin, "{%") && !has(begin, "{#"))
      ++begin;
    if (begin == npos) {
      push(TokenKind::data, std::string(text_.substr(at_)));
      at_ = text_.size();
      return;
    }
    const char kind = text_[begin + 1];
    const char sign =
        begin + 2 < text_.size() && (text_[begin + 2] == '-' || text_[begin + 2] == '+') ? text_[begin + 2] : '\0';
    const size_t inside = begin + 2 + (sign != '\0' ? 1 : 0);
    data(begin, sign, kind == '{');
    if (kind == '#') return comment(inside);
    if (kind == '%' && raw(inside)) return;
    push(kind == '{' ? TokenKind::output_begin : TokenKind::block_begin);
    advance(inside);
    tag(kind == '{');
  }

  void comment(size_t inside) {
    const size_t end = text_.find("#}", inside);
    if (end == npos) return fail(line_, "a comment without its end \"#}\"");
    const bool sign = end > inside && (text_[end - 1] == '-' || text_[end - 1] == '+');
    close(sign ? end - 1 : end, true);
  }

  // Where text_ at `at` reads "<space>word<space>[sign]%}": the place of the sign or of "%}".
  size_t tag_end_after(size_t at, std::string_view word, bool plus) const {
    at = skip_space(at);
    if (!has(at, word)) return npos;
    at = skip_space(at + word.size());
    return has(at, "%}") || has(at, "-%}") || (plus && has(at, "+%}")) ? at : npos;
  }

  bool raw(size_t inside) {
    const size_t open = tag_end_after(inside, "raw", false);
    if (open == npos) return false;
    const int line = line_;
    close(open, false);
    for (size_t at = at_; (at = text_.find("{%", at)) != npos; at += 2) {
      const char sign = at + 2 < text_.size() && (text_[at + 2] == '-' || text_[at + 2] == '+') ? text_[at + 2] : '\0';
      const size_t end = tag_end_after(at + 2 + (sign != '\0' ? 1 : 0), "endraw", true);
      if (end == npos) continue;
      data(at, sign, false);
      close(end, true);
      return true;
    }
    fail(line, "a raw block without endraw");
    return true;
  }

  void tag(bool output) {
    const int line = line_;
    const std::string_view closing = output ? "}}" : "%}";
    std::string brackets;
    while (!failed_) {
      advance(skip_space(at_));
      if (at_ >= text_.size()) return fail(line, fmt::format("a tag without its end \"{}\"", closing));
      const bool sign = text_[at_] == '-' || (text_[at_] == '+' && !output);
      if (brackets.empty() && has(at_ + (sign ? 1 : 0), closing)) {
        push(output ? TokenKind::output_end : TokenKind::block_end);
        return close(at_, !output);
      }
      token(brackets);
    }
  }

  void token(std::string& brackets) {
    const char c = text_[at_];
    if (name_start(c)) {
      const size_t begin = at_;
      while (at_ < text_.size() && name_char(text_[at_])) ++at_;
      return push(TokenKind::name, std::string(text_.substr(begin, at_ - begin)));
    }
    if (digit(c)) return number();
    if (c == '"' || c == '\'') return string(c);
    static constexpr std::string_view kOps[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                                "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view op : kOps) {
      if (!has(at_, op)) continue;
      if (c == '(' || c == '[' || c == '{') brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (c == ')' || c == ']' || c == '}') {
        if (brackets.empty() || brackets.back() != c) return fail(line_, fmt::format("'{}' closes nothing", c));
        brackets.pop_back();
      }
      push(TokenKind::op, std::string(op));
      at_ += op.size();
      return;
    }
    fail(line_, fmt::format("unexpected character \"{}\"", printable(text_.substr(at_, 1))));
  }

  // Digits with single underscores between them.
  size_t digits_end(size_t at) const {
    while (at < text_.size() &&
           (digit(text_[at]) || (text_[at] == '_' && at + 1 < text_.size() && digit(text_[at + 1]))))
      ++at;
    return at;
  }

  void number() {
    size_t end = digits_end(at_);
    bool real = false;
    const bool after_dot = at_ > 0 && text_[at_ - 1] == '.';  // a.0.1: indices, not 0.1
    if (!after_dot && end + 1 < text_.size() && text_[end] == '.' && digit(text_[end + 1])) {
      real = true;
      end = digits_end(end + 1);
    }
    if (!after_dot && end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && digit(text_[exponent])) {
        real = true;
        end = digits_end(exponent);
      }
    }
    std::string plain;
    for (const char c : text_.substr(at_, end - at_))
      if (c != '_') plain += c;
    push(real ? TokenKind::real : TokenKind::integer);
    const char *first = plain.data(), *last = plain.data() + plain.size();
    const auto ec = real ? std::from_chars(first, last, tokens_.back().real).ec
                         : std::from_chars(first, last, tokens_.back().integer).ec;
    if (ec != std::errc()) return fail(line_, fmt::format("the number {} does not fit", printable(plain, 40)));
    at_ = end;
  }

  void string(char quote) {
    const int line = line_;
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return fail(line, "a string without its end");
    push(TokenKind::string, unescaped(text_.substr(at_ + 1, end - at_ - 1)));
    advance(end + 1);
  }

  // Python's escapes; an unknown one stays as it is written.
  static std::string unescaped(std::string_view text) {
    static constexpr std::string_view kNames = "\\'\"abfnrtv", kBytes = "\\'\"\a\b\f\n\r\t\v";
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 >= text.size()) {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      const size_t name = kNames.find(c);
      const size_t hex = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
      uint32_t code = 0;
      if (name != npos) {
        out += kBytes[name];
      } else if (c == '\n') {
        continue;
      } else if (hex > 0 && text.size() - i > hex &&
                 std::from_chars(text.data() + i + 1, text.data() + i + 1 + hex, code, 16).ptr ==
                     text.data() + i + 1 + hex) {
        append_code(out, static_cast<int32_t>(std::min(code, 0x110000u)));
        i += hex;
      } else if (c >= '0' && c <= '7') {
        size_t n = 1;
        while (n < 3 && i + n < text.size() && text[i + n] >= '0' && text[i + n] <= '7') ++n;
        std::from_chars(text.data() + i, text.data() + i + n, code, 8);
        append_code(out, static_cast<int32_t>(code));
        i += n - 1;
      } else {
        (out += '\\') += c;
      }
    }
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
  bool failed_ = false;
  std::string error_;
  int error_line_ = 1;
};

}  // namespace

Error template_error(int line, std::string text, Code code) {
  return make_error(code, std::move(text), fmt::format("chat template line {}", line));
}

Result<std::vector<Token>> lex(std::string_view source) {
  const std::string text = normalised(is_utf8(source) ? std::string(source) : utf8_lossy(source));
  return Lexer(text).run();
}

}  // namespace tern::jinja
