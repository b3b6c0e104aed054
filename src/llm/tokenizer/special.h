// Finds tokens that are written out in a text ("<|im_start|>"): leftmost first, of several at one place the longest.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/llm/tokenizer.h"

namespace tern::llm {

// A byte trie. Immutable after the last add; looking up costs at most the longest name per byte of text.
class NameTrie {
 public:
  // Of equal names the first one added is kept.
  void add(std::string_view name, TokenId id);
  bool empty() const { return nodes_.size() == 1; }

  struct Match {
    size_t begin = 0, size = 0;
    TokenId id = kNoToken;  // kNoToken: none found
  };
  Match find(std::string_view text, size_t from) const;

 private:
  struct Node {
    std::vector<std::pair<uint8_t, uint32_t>> next;  // sorted by byte
    TokenId id = kNoToken;
  };
  const Node* child(const Node& node, uint8_t byte) const;
  std::vector<Node> nodes_ = std::vector<Node>(1);
};

}  // namespace tern::llm
