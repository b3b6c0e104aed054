// Words, numbers and strings of the graph's text, with places for errors. White space and // comments separate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"

namespace tern {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) { skip(); }

  size_t offset() const { return at_; }  // of the next token
  bool at_end() const { return at_ >= text_.size(); }
  Error error(std::string text) const { return error_at(at_, std::move(text)); }
  Error error_at(size_t offset, std::string text) const;  // Code::malformed, where = "line:column"
  Error located(size_t offset, Error e) const;            // prefixes the place
  Status located(size_t offset, Status s) const;

  bool peek(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(std::string_view token);       // punctuation
  bool take_word(std::string_view token);  // a whole word
  Status expect(std::string_view token);   // either
  Result<std::string_view> word();         // letters, digits, '_', '.'
  Result<std::string> value_name();        // after '%'
  Result<std::string> string();
  Result<int64_t> integer();
  Result<double> real();
  Result<std::vector<int64_t>> integers();
  Result<std::vector<std::byte>> hex();
  // One number of a constant (one component of a complex one), appended as its bits.
  Status element(DType dtype, std::vector<std::byte>& out);
  // Up to one of `ends` outside of parentheses, which is not consumed.
  Result<std::string_view> dim_text(std::string_view ends);

 private:
  void skip();
  template <class T>
  Result<T> number(std::string_view what);
  std::string found() const;

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace tern
