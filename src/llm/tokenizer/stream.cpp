// Text that comes in pieces: whole characters out, stop strings found.
#include <algorithm>

#include "base/utf8.h"
#include "tern/llm/tokenizer.h"

namespace tern {
namespace {

// Whether more bytes could make a character of tail, which is not one yet: with some second byte and any further ones.
bool may_become_character(std::string_view tail) {
  if (tail.empty() || tail.size() > 3) return false;
  for (const char second : {'\x80', '\x90', '\xA0'}) {
    std::string filled(tail);
    if (filled.size() == 1) filled += second;
    filled.resize(4, '\x80');
    if (utf8_sequence(filled) > tail.size()) return true;
  }
  return false;
}

// Where the bytes at the end begin that are to be held back.
size_t whole_characters(std::string_view text) {
  for (size_t n = std::min<size_t>(3, text.size()); n > 0; --n)
    if (may_become_character(text.substr(text.size() - n))) return text.size() - n;
  return text.size();
}

}  // namespace

Result<std::string> Detokenizer::push(TokenId id) {
  TERN_TRY(std::string piece, tokenizer_->piece(id, special_));
  if (at_start_ && !piece.empty()) {
    const TokenType type = tokenizer_->type(id);
    if (type != TokenType::control) {
      at_start_ = false;
      if (tokenizer_->adds_space_prefix() && piece[0] == ' ') piece.erase(0, 1);
    }
  }
  held_ += piece;
  const size_t whole = whole_characters(held_);
  std::string out = utf8_lossy(std::string_view(held_).substr(0, whole));
  held_.erase(0, whole);
  return out;
}

std::string Detokenizer::flush() {
  std::string out = utf8_lossy(held_);
  held_.clear();
  return out;
}

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

StopMatcher::Out StopMatcher::push(std::string_view text) {
  if (stopped_) return Out{{}, true};
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at >= first) continue;
    first = at;
    which_ = stop;
  }
  if (first != std::string::npos) {
    stopped_ = true;
    Out out{held_.substr(0, first), true};
    held_.clear();
    return out;
  }
  // The longest end of the text that begins some stop string.
  size_t keep = 0;
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n)
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
  Out out{held_.substr(0, held_.size() - keep), false};
  held_.erase(0, held_.size() - keep);
  return out;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace tern
