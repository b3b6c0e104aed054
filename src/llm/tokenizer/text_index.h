// Finds a text's number in a list of texts. Made for vocabularies: a look-up touches one slot and, where the hash
// agrees, one string, which is what starting with 150,000 tokens costs.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tern::llm {

// Holds numbers only: every call is handed the list that they count in. Not thread-safe while adding.
class TextIndex {
 public:
  void reserve(size_t texts) { grow(std::bit_ceil(texts * 2 + 16), {}); }

  // The number of text, or -1.
  int32_t find(const std::vector<std::string>& texts, std::string_view text) const {
    if (slots_.empty()) return -1;
    const uint32_t hash = hash_of(text);
    for (size_t at = hash & (slots_.size() - 1); slots_[at].number >= 0; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == hash && texts[static_cast<size_t>(slots_[at].number)] == text) return slots_[at].number;
    return -1;
  }

  // Of equal texts the first one added is kept; the number that now stands for the text.
  int32_t add(const std::vector<std::string>& texts, int32_t number) {
    const std::string_view text = texts[static_cast<size_t>(number)];
    if (const int32_t known = find(texts, text); known >= 0) return known;
    if (slots_.size() < 2 * (used_ + 1)) grow(std::bit_ceil((used_ + 1) * 4), slots_);
    put({hash_of(text), number});
    ++used_;
    return number;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t number = -1;
  };

  // Eight bytes a step; no defence against chosen collisions is needed, probing is over one file's own tokens.
  static uint32_t hash_of(std::string_view text) {
    uint64_t h = 0x9e3779b97f4a7c15ull ^ text.size();
    while (!text.empty()) {
      uint64_t word = 0;
      const size_t n = text.size() < 8 ? text.size() : 8;
      std::memcpy(&word, text.data(), n);
      h = (h ^ word) * 0xff51afd7ed558ccdull;
      h ^= h >> 32;
      text.remove_prefix(n);
    }
    return static_cast<uint32_t>(h ^ (h >> 29));
  }

  void put(Slot slot) {
    size_t at = slot.hash & (slots_.size() - 1);
    while (slots_[at].number >= 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
  void grow(size_t size, std::vector<Slot> from) {
    slots_.assign(size, Slot{});
    for (const Slot& slot : from)
      if (slot.number >= 0) put(slot);
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace tern::llm
