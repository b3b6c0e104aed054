// Byte-pair encoding of one word: the neighbouring pair with the best rank is joined until none is left (Sennrich et
// al. 2016, on bytes as in GPT-2).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "llm/tokenizer/vocab.h"

namespace tern::llm {

// Immutable after build.
class BytePair {
 public:
  // merges: "left right", best first. `vocab` must outlive this and stay where it is.
  static Result<BytePair> build(const Vocab& vocab, const std::vector<std::string>& merges);

  // Working memory of one thread, kept between words.
  struct Scratch {
    struct Symbol {
      int32_t id, prev, next;  // id < 0: joined into its left neighbour
      uint32_t begin, size;
    };
    struct Candidate {
      uint32_t rank;
      int32_t left, left_id, right_id;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> queue;
  };

  // Appends the ids of word (bytes, less than 2^31 of them); a byte that has no token gives `unk`, or an error where
  // that is kNoToken.
  Status encode(std::string_view word, TokenId unk, Scratch& scratch, std::vector<TokenId>& ids) const;

 private:
  // Ids of symbols below the vocabulary's size are tokens; above lie texts that only occur on the way to a token.
  struct Merge {
    uint64_t pair = ~0ull;
    uint32_t rank = 0;
    int32_t joined = -1;
  };
  static uint64_t pair_of(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  }
  const Merge* find(int32_t left, int32_t right) const;
  void insert(const Merge& merge);
  void offer(Scratch& scratch, int32_t left) const;

  const Vocab* vocab_ = nullptr;
  std::vector<Merge> table_;  // open addressing, a power of two, at most half full
  std::array<int32_t, 256> byte_symbols_{};
};

}  // namespace tern::llm
