// Cuts text into the words that byte-pair encoding works within. Which cuts is part of the model: each family is a list
// of regular expressions, applied one after the other to the pieces that the one before left.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tern/result.h"

namespace tern::llm {

// Immutable: shared by threads without a lock.
class Pretokenizer {
 public:
  // By tokenizer.ggml.pre; an unknown family is refused by name, since wrong cuts give wrong ids without a sign.
  static Result<Pretokenizer> create(std::string_view name);
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  // Appends the pieces of text, in order and without gaps. Runs of bytes that are not UTF-8 are pieces of their own.
  Status split(std::string_view text, std::vector<std::string_view>& pieces) const;

  // Whether the family's text is composed (NFC) first; then composed() does that and leaves what is not UTF-8 as it is.
  bool composes() const;
  static std::string composed(std::string_view text);

  bool ignore_merges() const;  // a piece that is a token is that token, whatever the merges say
  bool adds_bos() const;       // where the file does not say

 private:
  struct Impl;
  explicit Pretokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace tern::llm
