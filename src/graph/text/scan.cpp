#include "graph/text/scan.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace tern {
namespace {

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}
constexpr size_t kMaxDimText = 1 << 14;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

template <class T>
void put(std::vector<std::byte>& out, T value) {
  const auto* p = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), p, p + sizeof(T));
}

}  // namespace

Error Scanner::error_at(size_t offset, std::string text) const {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < offset && i < text_.size(); ++i) {
    if (text_[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return make_error(Code::malformed, std::move(text), std::to_string(line) + ":" + std::to_string(column));
}

Error Scanner::located(size_t offset, Error e) const {
  const Error place = error_at(offset, "");
  e.where = e.where.empty() ? place.where : place.where + ", " + e.where;
  return e;
}

Status Scanner::located(size_t offset, Status s) const {
  if (s) return s;
  return located(offset, s.take_error());
}

void Scanner::skip() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else {
      return;
    }
  }
}

std::string Scanner::found() const {
  if (at_end()) return ", found the end";
  size_t n = 1;
  while (n < 20 && at_ + n < text_.size() && word_char(text_[at_ + n - 1]) && word_char(text_[at_ + n])) ++n;
  return ", found '" + std::string(text_.substr(at_, n)) + "'";
}

bool Scanner::take(std::string_view token) {
  if (text_.substr(at_, token.size()) != token) return false;
  at_ += token.size();
  skip();
  return true;
}

bool Scanner::take_word(std::string_view token) {
  const size_t end = at_ + token.size();
  if (text_.substr(at_, token.size()) != token || (end < text_.size() && word_char(text_[end]))) return false;
  at_ = end;
  skip();
  return true;
}

Status Scanner::expect(std::string_view token) {
  if (word_char(token[0]) ? take_word(token) : take(token)) return ok();
  return error("expected '" + std::string(token) + "'" + found());
}

Result<std::string_view> Scanner::word() {
  size_t end = at_;
  while (end < text_.size() && word_char(text_[end])) ++end;
  if (end == at_) return error("expected a name" + found());
  const std::string_view w = text_.substr(at_, end - at_);
  at_ = end;
  skip();
  return w;
}

Result<std::string> Scanner::value_name() {
  if (!peek('%')) return error("expected a value like %1" + found());
  size_t end = at_ + 1;
  while (end < text_.size() && (word_char(text_[end]) || text_[end] == '-' || text_[end] == '/')) ++end;
  if (end == at_ + 1) return error("expected a name after '%'");
  std::string name(text_.substr(at_ + 1, end - at_ - 1));
  at_ = end;
  skip();
  return name;
}

Result<std::string> Scanner::string() {
  if (!peek('"')) return error("expected a string" + found());
  const size_t start = at_;
  std::string out;
  for (size_t i = at_ + 1; i < text_.size(); ++i) {
    char c = text_[i];
    if (c == '"') {
      at_ = i + 1;
      skip();
      return out;
    }
    if (c == '\n') break;
    if (c != '\\') {
      out += c;
      continue;
    }
    c = ++i < text_.size() ? text_[i] : '\0';
    if (c == 'x') {
      const int hi = i + 2 < text_.size() ? hex_digit(text_[i + 1]) : -1, lo = hi >= 0 ? hex_digit(text_[i + 2]) : -1;
      if (lo < 0) return error_at(i, "expected two hexadecimal digits after \\x");
      out += static_cast<char>(hi * 16 + lo);
      i += 2;
    } else if (c == 'n' || c == 't' || c == '"' || c == '\\') {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    } else {
      return error_at(i, "no such escape in a string: \\\" \\\\ \\n \\t \\xHH");
    }
  }
  return error_at(start, "the string does not end on its line");
}

template <class T>
Result<T> Scanner::number(std::string_view what) {
  T v{};
  const char* first = text_.data() + at_;
  const auto r = std::from_chars(first, text_.data() + text_.size(), v);
  if (r.ec == std::errc::result_out_of_range) return error("the number does not fit " + std::string(what));
  if (r.ec != std::errc{}) return error("expected " + std::string(what) + found());
  at_ += static_cast<size_t>(r.ptr - first);
  if (at_ < text_.size() && word_char(text_[at_])) return error("expected the end of a number" + found());
  skip();
  return v;
}

Result<int64_t> Scanner::integer() { return number<int64_t>("an integer of 64 bits"); }
Result<double> Scanner::real() { return number<double>("a number"); }

Result<std::vector<int64_t>> Scanner::integers() {
  TERN_OK(expect("["));
  std::vector<int64_t> out;
  while (!take("]")) {
    if (!out.empty()) TERN_OK(expect(","));
    TERN_TRY(const int64_t v, integer());
    out.push_back(v);
  }
  return out;
}

Result<std::vector<std::byte>> Scanner::hex() {
  if (!peek('"')) return error("expected hexadecimal digits in quotes" + found());
  std::vector<std::byte> out;
  size_t i = at_ + 1;
  for (; i + 1 < text_.size() && text_[i] != '"'; i += 2) {
    const int hi = hex_digit(text_[i]), lo = hex_digit(text_[i + 1]);
    if (hi < 0 || lo < 0) return error_at(i, "expected pairs of hexadecimal digits");
    out.push_back(static_cast<std::byte>(hi * 16 + lo));
  }
  if (i >= text_.size() || text_[i] != '"') return error("the digits do not end");
  at_ = i + 1;
  skip();
  return out;
}

namespace {

// Narrow types were printed as the f32 of the same value; where the text rounds, so does this.
bool put_float(DType dtype, float v, std::vector<std::byte>& out) {
  switch (dtype) {
    case DType::f32:
    case DType::c64: put(out, v); return true;
    case DType::f16: put(out, f32_to_f16(v)); return true;
    case DType::bf16: put(out, f32_to_bf16(v)); return true;
    case DType::f8e4m3: put(out, f32_to_f8e4m3(v)); return true;
    case DType::f8e5m2: put(out, f32_to_f8e5m2(v)); return true;
    default: return false;
  }
}

}  // namespace

Status Scanner::element(DType dtype, std::vector<std::byte>& out) {
  const DTypeInfo& info = dtype_info(dtype);
  const size_t start = at_;
  if (dtype == DType::f64 || dtype == DType::c128) {
    TERN_TRY(const double v, number<double>("a number"));
    put(out, v);
    return ok();
  }
  if (info.kind == DTypeKind::floating || info.kind == DTypeKind::complex) {
    TERN_TRY(const float v, number<float>("a number of 32 bits"));
    if (!put_float(dtype, v, out)) return error_at(start, "a type without a spelling");
    return ok();
  }
  if (dtype == DType::u64) {
    TERN_TRY(const uint64_t v, number<uint64_t>("an integer of 64 bits"));
    put(out, v);
    return ok();
  }
  TERN_TRY(const int64_t v, integer());
  const bool fits = info.kind == DTypeKind::boolean ? v == 0 || v == 1
                    : info.mantissa_bits == 63      ? true
                    : info.kind == DTypeKind::signed_int
                        ? v >= -(int64_t{1} << info.mantissa_bits) && v < (int64_t{1} << info.mantissa_bits)
                        : v >= 0 && v < (int64_t{1} << info.mantissa_bits);
  if (!fits) return error_at(start, std::to_string(v) + " is no " + std::string(info.name));
  for (uint32_t i = 0; i < info.bytes; ++i) out.push_back(static_cast<std::byte>(static_cast<uint64_t>(v) >> (8 * i)));
  return ok();
}

Result<std::string_view> Scanner::dim_text(std::string_view ends) {
  int depth = 0;
  size_t i = at_;
  for (; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == '\n' || (depth == 0 && ends.find(c) != std::string_view::npos)) break;
    depth += (c == '(') - (c == ')');
  }
  if (i - at_ > kMaxDimText) return error("the dim is too long");
  std::string_view raw = text_.substr(at_, i - at_);
  at_ = i;
  skip();
  while (!raw.empty() && (raw.back() == ' ' || raw.back() == '\t' || raw.back() == '\r')) raw.remove_suffix(1);
  return raw;
}

}  // namespace tern
