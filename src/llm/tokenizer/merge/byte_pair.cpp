#include "llm/tokenizer/merge/byte_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/utf8.h"

namespace tern::llm {
namespace {

size_t slot_of(uint64_t pair, size_t mask) {
  pair *= 0x9e3779b97f4a7c15ull;
  return static_cast<size_t>(pair ^ (pair >> 29)) & mask;
}

// Numbers the texts that merging can produce: a token's own id, or a fresh number past the vocabulary.
class Symbols {
 public:
  explicit Symbols(const Vocab& vocab) : vocab_(vocab) {}

  int32_t number(std::string_view text) {
    if (const TokenId id = vocab_.find_mergeable(text); id != kNoToken) return id;
    const auto past = static_cast<int32_t>(vocab_.bytes.size());
    if (const int32_t known = index_.find(others_, text); known >= 0) return past + known;
    others_.emplace_back(text);
    return past + index_.add(others_, static_cast<int32_t>(others_.size() - 1));
  }

 private:
  const Vocab& vocab_;
  std::vector<std::string> others_;
  TextIndex index_;
};

// Lower rank first, then further left.
bool later(const BytePair::Scratch::Candidate& a, const BytePair::Scratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

std::string side_of(std::string_view text) {
  std::string out;
  if (!bytes_of_alphabet(text, out)) out = text;
  return out;
}

}  // namespace

Result<BytePair> BytePair::build(const Vocab& vocab, const std::vector<std::string>& merges) {
  if (merges.size() > (size_t{1} << 26))
    return make_error(Code::limit,
                      fmt::format("tokenizer.ggml.merges holds {} merges, the limit is 2^26", merges.size()));
  BytePair out;
  out.vocab_ = &vocab;
  out.table_.resize(std::bit_ceil(merges.size() * 2 + 2));
  Symbols symbols(vocab);
  for (size_t b = 0; b < 256; ++b) out.byte_symbols_[b] = symbols.number(std::string(1, static_cast<char>(b)));
  std::string joined;
  int32_t next = 0;
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view text = merges[i];
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == text.size() ||
        text.find(' ', space + 1) != std::string_view::npos)
      return make_error(Code::malformed,
                        fmt::format("tokenizer.ggml.merges[{}] is \"{}\", wants two texts with one space between", i,
                                    printable(text)));
    joined = side_of(text.substr(0, space));
    const int32_t left = symbols.number(joined);
    const std::string tail = side_of(text.substr(space + 1));
    const int32_t right = symbols.number(tail);
    joined += tail;
    // Vocabularies list tokens in the order of their merges: mostly the next token is this one.
    next = vocab.is_mergeable(next, joined) ? next : symbols.number(joined);
    out.insert(Merge{pair_of(left, right), static_cast<uint32_t>(i), next});
    ++next;
  }
  return out;
}

void BytePair::insert(const Merge& merge) {
  const size_t mask = table_.size() - 1;
  size_t at = slot_of(merge.pair, mask);
  while (table_[at].joined >= 0) {
    if (table_[at].pair == merge.pair) return;  // the better rank came first
    at = (at + 1) & mask;
  }
  table_[at] = merge;
}

const BytePair::Merge* BytePair::find(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  const size_t mask = table_.size() - 1;
  for (size_t at = slot_of(pair, mask); table_[at].joined >= 0; at = (at + 1) & mask)
    if (table_[at].pair == pair) return &table_[at];
  return nullptr;
}

// Puts the pair that starts at symbol `left` into the queue where it can be joined.
void BytePair::offer(Scratch& scratch, int32_t left) const {
  if (left < 0) return;
  const Scratch::Symbol& a = scratch.symbols[static_cast<size_t>(left)];
  if (a.next < 0) return;
  const int32_t right_id = scratch.symbols[static_cast<size_t>(a.next)].id;
  const Merge* merge = find(a.id, right_id);
  if (merge == nullptr) return;
  scratch.queue.push_back({merge->rank, left, a.id, right_id});
  std::push_heap(scratch.queue.begin(), scratch.queue.end(), later);
}

Status BytePair::encode(std::string_view word, TokenId unk, Scratch& scratch, std::vector<TokenId>& ids) const {
  auto& symbols = scratch.symbols;
  symbols.clear();
  scratch.queue.clear();
  const auto n = static_cast<int32_t>(word.size());
  for (int32_t i = 0; i < n; ++i)
    symbols.push_back({byte_symbols_[static_cast<uint8_t>(word[static_cast<size_t>(i)])], i - 1, i + 1 < n ? i + 1 : -1,
                       static_cast<uint32_t>(i), 1});
  for (int32_t i = 0; i + 1 < n; ++i) offer(scratch, i);
  while (!scratch.queue.empty()) {
    std::pop_heap(scratch.queue.begin(), scratch.queue.end(), later);
    const Scratch::Candidate best = scratch.queue.back();
    scratch.queue.pop_back();
    Scratch::Symbol& a = symbols[static_cast<size_t>(best.left)];
    if (a.id != best.left_id || a.next < 0) continue;  // one of the two was joined elsewhere in the meantime
    Scratch::Symbol& b = symbols[static_cast<size_t>(a.next)];
    if (b.id != best.right_id) continue;
    a.id = find(best.left_id, best.right_id)->joined;
    a.size += b.size;
    a.next = b.next;
    b.id = -1;
    if (a.next >= 0) symbols[static_cast<size_t>(a.next)].prev = best.left;
    offer(scratch, a.prev);
    offer(scratch, best.left);
  }
  const auto tokens = static_cast<int32_t>(vocab_->bytes.size());
  for (int32_t i = n == 0 ? -1 : 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
    const Scratch::Symbol& s = symbols[static_cast<size_t>(i)];
    if (s.id < tokens) {
      ids.push_back(s.id);
      continue;
    }
    // A text that is no token: its bytes, each of which may be one.
    for (const char c : word.substr(s.begin, s.size)) {
      const TokenId byte = vocab_->byte_tokens[static_cast<uint8_t>(c)];
      if (byte == kNoToken && unk == kNoToken)
        return make_error(Code::unsupported,
                          fmt::format("the vocabulary has no token for byte 0x{:02x} and none for unknown text",
                                      static_cast<uint8_t>(c)));
      ids.push_back(byte == kNoToken ? unk : byte);
    }
  }
  return ok();
}

}  // namespace tern::llm
