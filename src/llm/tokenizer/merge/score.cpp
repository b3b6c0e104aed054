#include "llm/tokenizer/merge/score.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace tern::llm {
namespace {

struct Symbol {
  int32_t prev, next;
  uint32_t begin, size;  // size 0: joined into its left neighbour
};
struct Candidate {
  float score;
  int32_t left;
  uint32_t size;  // of the joined text: tells stale entries
};
bool later(const Candidate& a, const Candidate& b) { return a.score != b.score ? a.score < b.score : a.left > b.left; }

class Merger {
 public:
  Merger(const Vocab& vocab, const std::vector<float>& scores, std::string_view text)
      : vocab_(vocab), scores_(scores), text_(text) {
    for (size_t at = 0; at < text.size();) {
      const size_t n = std::max<size_t>(1, utf8_sequence(text.substr(at)));
      const auto i = static_cast<int32_t>(symbols_.size());
      symbols_.push_back({i - 1, i + 1, static_cast<uint32_t>(at), static_cast<uint32_t>(n)});
      at += n;
    }
    if (!symbols_.empty()) symbols_.back().next = -1;
    for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols_.size()); ++i) offer(i);
  }

  void run() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), later);
      const Candidate best = queue_.back();
      queue_.pop_back();
      Symbol& a = symbols_[static_cast<size_t>(best.left)];
      if (a.size == 0 || a.next < 0) continue;
      Symbol& b = symbols_[static_cast<size_t>(a.next)];
      if (a.size + b.size != best.size) continue;
      a.size = best.size;
      a.next = b.next;
      b.size = 0;
      if (a.next >= 0) symbols_[static_cast<size_t>(a.next)].prev = best.left;
      offer(a.prev);
      offer(best.left);
    }
  }

  Status output(TokenId unk, std::vector<TokenId>& ids) const {
    bool after_unknown = false;
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[static_cast<size_t>(i)].next) {
      const Symbol& s = symbols_[static_cast<size_t>(i)];
      const std::string_view piece = text_.substr(s.begin, s.size);
      const TokenId id = vocab_.find_mergeable(piece);
      if (id != kNoToken) {
        ids.push_back(id);
      } else if (std::all_of(piece.begin(), piece.end(), [&](char c) { return byte_token(c) != kNoToken; })) {
        for (const char c : piece) ids.push_back(byte_token(c));
      } else if (unk == kNoToken) {
        return make_error(
            Code::unsupported,
            fmt::format("the vocabulary has no token for \"{}\" and none for unknown text", printable(piece)));
      } else {
        if (!after_unknown) ids.push_back(unk);
        after_unknown = true;
        continue;
      }
      after_unknown = false;
    }
    return ok();
  }

 private:
  TokenId byte_token(char c) const { return vocab_.byte_tokens[static_cast<uint8_t>(c)]; }

  void offer(int32_t left) {
    if (left < 0) return;
    const Symbol& a = symbols_[static_cast<size_t>(left)];
    if (a.next < 0) return;
    const uint32_t size = a.size + symbols_[static_cast<size_t>(a.next)].size;
    const TokenId id = vocab_.find_mergeable(text_.substr(a.begin, size));
    if (id == kNoToken) return;
    queue_.push_back({scores_[static_cast<size_t>(id)], left, size});
    std::push_heap(queue_.begin(), queue_.end(), later);
  }

  const Vocab& vocab_;
  const std::vector<float>& scores_;
  std::string_view text_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;
};

}  // namespace

Status encode_by_score(const Vocab& vocab, const std::vector<float>& scores, std::string_view text, TokenId unk,
                       std::vector<TokenId>& ids) {
  Merger merger(vocab, scores, text);
  merger.run();
  return merger.output(unk, ids);
}

}  // namespace tern::llm
