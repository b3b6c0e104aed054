#include "llm/tokenizer/special.h"

#include <algorithm>

namespace tern::llm {

void NameTrie::add(std::string_view name, TokenId id) {
  if (name.empty()) return;
  uint32_t at = 0;
  for (const char c : name) {
    const auto byte = static_cast<uint8_t>(c);
    auto& next = nodes_[at].next;
    const auto it = std::lower_bound(next.begin(), next.end(), std::pair<uint8_t, uint32_t>(byte, 0));
    if (it != next.end() && it->first == byte) {
      at = it->second;
      continue;
    }
    const auto fresh = static_cast<uint32_t>(nodes_.size());
    next.insert(it, {byte, fresh});
    nodes_.emplace_back();
    at = fresh;
  }
  if (nodes_[at].id == kNoToken) nodes_[at].id = id;
}

const NameTrie::Node* NameTrie::child(const Node& node, uint8_t byte) const {
  const auto it = std::lower_bound(node.next.begin(), node.next.end(), std::pair<uint8_t, uint32_t>(byte, 0));
  return it != node.next.end() && it->first == byte ? &nodes_[it->second] : nullptr;
}

NameTrie::Match NameTrie::find(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    Match best;
    const Node* node = &nodes_[0];
    for (size_t i = begin; i < text.size(); ++i) {
      node = child(*node, static_cast<uint8_t>(text[i]));
      if (node == nullptr) break;
      if (node->id != kNoToken) best = Match{begin, i + 1 - begin, node->id};
    }
    if (best.id != kNoToken) return best;
  }
  return Match{text.size(), 0, kNoToken};
}

}  // namespace tern::llm
