#include "llm/chat/value/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "llm/chat/value/text.h"

namespace tern::jinja {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<Value> document() {
    Value value = any(0);
    skip();
    if (problem_.empty() && at_ < text_.size()) fail("more text after the value");
    if (!problem_.empty()) return make_error(Code::malformed, fmt::format("{} at byte {}", problem_, at_));
    return value;
  }

 private:
  void fail(const char* problem) {
    if (problem_.empty()) problem_ = problem;
  }
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Value any(uint32_t depth) {
    skip();
    if (depth >= kMaxValueDepth - 8) return fail("nested too deeply"), Value();
    if (take('{')) return object(depth);
    if (take('[')) return array(depth);
    if (take('"')) return Value(string());
    if (take("true")) return Value(true);
    if (take("false")) return Value(false);
    if (take("null")) return Value::none();
    return number();
  }

  Value object(uint32_t depth) {
    Dict dict;
    skip();
    if (take('}')) return make_dict(std::move(dict));
    do {
      skip();
      if (!take('"')) return fail("wants a key in double quotes"), Value();
      std::string key = string();
      skip();
      if (!take(':')) return fail("wants ':'"), Value();
      dict.set(Value(std::move(key)), any(depth + 1));
      if (!problem_.empty()) return Value();
      skip();
    } while (take(','));
    if (!take('}')) fail("wants ',' or '}'");
    return make_dict(std::move(dict));
  }

  Value array(uint32_t depth) {
    std::vector<Value> items;
    skip();
    if (take(']')) return make_list({});
    do {
      items.push_back(any(depth + 1));
      if (!problem_.empty()) return Value();
      skip();
    } while (take(','));
    if (!take(']')) fail("wants ',' or ']'");
    return make_list(std::move(items));
  }

  int32_t hex4() {
    if (text_.size() - at_ < 4) return fail("a cut \\u escape"), 0;
    int32_t code = 0;
    const char* first = text_.data() + at_;
    const auto parsed = std::from_chars(first, first + 4, code, 16);
    if (parsed.ec != std::errc() || parsed.ptr != first + 4 || *first == '-') return fail("a bad \\u escape"), 0;
    at_ += 4;
    return code;
  }

  void escape(std::string& out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt", kBytes = "\"\\/\b\f\n\r\t";
    if (take('u')) {
      int32_t code = hex4();
      if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
        const int32_t low = hex4();
        if (low >= 0xDC00 && low < 0xE000) code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
      return append_code(out, code);
    }
    const size_t name = at_ < text_.size() ? kNames.find(text_[at_]) : std::string_view::npos;
    if (name == std::string_view::npos) return fail("a bad escape");
    ++at_;
    out += kBytes[name];
  }

  std::string string() {
    std::string out;
    while (problem_.empty()) {
      if (at_ >= text_.size()) return fail("a string without end"), out;
      const char c = text_[at_];
      if (static_cast<uint8_t>(c) < 0x20) return fail("a control character in a string"), out;
      ++at_;
      if (c == '"') break;
      if (c == '\\')
        escape(out);
      else
        out += c;
    }
    return is_utf8(out) ? out : utf8_lossy(out);
  }

  Value number() {
    const size_t begin = at_;
    take('-');
    const size_t digits = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == digits) return fail("wants a value"), Value();
    const size_t whole = at_;
    while (at_ < text_.size() && std::string_view("0123456789+-.eE").find(text_[at_]) != std::string_view::npos) ++at_;
    const char *first = text_.data() + begin, *last = text_.data() + at_;
    int64_t integer = 0;
    if (whole == at_ && std::from_chars(first, last, integer).ec == std::errc()) return Value(integer);
    double real = 0;
    const auto parsed = std::from_chars(first, last, real);
    if (parsed.ptr != last || (parsed.ec != std::errc() && parsed.ec != std::errc::result_out_of_range))
      return fail("a bad number"), Value();
    return Value(real);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string problem_;
};

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void any(const Value& value, int64_t level) {
    switch (value.kind()) {
      case Kind::none: out += "null"; return;
      case Kind::boolean: out += value.boolean() ? "true" : "false"; return;
      case Kind::integer: out += std::to_string(value.integer()); return;
      case Kind::real: return real(value.number());
      case Kind::string: return string(value.string());
      case Kind::list: return list(value.list(), level);
      case Kind::dict: return dict(value.dict(), level);
      case Kind::undefined:
      case Kind::function:
      case Kind::space:
      case Kind::loop: problem = type_name(value); return;
    }
  }

  std::string out;
  std::string problem;

 private:
  void line(int64_t level) {
    if (style_.indent >= 0) (out += '\n').append(static_cast<size_t>(style_.indent * level), ' ');
  }
  void real(double value) {
    out += std::isnan(value) ? "NaN" : std::isinf(value) ? (value < 0 ? "-Infinity" : "Infinity") : real_text(value);
  }
  void string(std::string_view text) {
    out += '"';
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const int32_t code = next_code(text, at);
      if (code == '"' || code == '\\')
        (out += '\\') += static_cast<char>(code);
      else if (code == '\n')
        out += "\\n";
      else if (code == '\r')
        out += "\\r";
      else if (code == '\t')
        out += "\\t";
      else if (code == '\b')
        out += "\\b";
      else if (code == '\f')
        out += "\\f";
      else if (code < 0x20 || (style_.ascii && code > 0x7E && code < 0x10000))
        out += fmt::format("\\u{:04x}", code);
      else if (style_.ascii && code >= 0x10000)
        out +=
            fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF));
      else
        out += text.substr(begin, at - begin);
    }
    out += '"';
  }
  void list(const List& list, int64_t level) {
    if (list.items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out += style_.item_separator;
      line(level + 1);
      any(list.items[i], level + 1);
    }
    line(level);
    out += ']';
  }
  void key(const Value& key) {
    if (key.is_string()) return string(key.string());
    if (key.is(Kind::list) || key.is(Kind::dict)) {
      problem = fmt::format("{} as a key", type_name(key));
      return;
    }
    out += '"';
    any(key, 0);
    out += '"';
  }
  void dict(const Dict& dict, int64_t level) {
    if (dict.items.empty()) {
      out += "{}";
      return;
    }
    std::vector<const Pair*> items;
    for (const Pair& item : dict.items) items.push_back(&item);
    if (style_.sort_keys)
      std::stable_sort(items.begin(), items.end(),
                       [](const Pair* a, const Pair* b) { return to_text(a->first) < to_text(b->first); });
    out += '{';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += style_.item_separator;
      line(level + 1);
      key(items[i]->first);
      out += style_.key_separator;
      any(items[i]->second, level + 1);
    }
    line(level);
    out += '}';
  }

  const JsonStyle& style_;
};

}  // namespace

Result<Value> parse_json(std::string_view text, std::string_view what) {
  auto value = Reader(text).document();
  if (!value) return make_error(Code::malformed, fmt::format("{} is not JSON: {}", what, value.error().text));
  return value;
}

Result<std::string> dump_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.any(value, 0);
  if (!writer.problem.empty())
    return make_error(Code::invalid, fmt::format("JSON has no form for a value of type {}", writer.problem));
  return std::move(writer.out);
}

}  // namespace tern::jinja
