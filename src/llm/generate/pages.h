// The pages of a KV state: which sequence holds which, and where its tokens lie.
#pragma once

#include <cstdint>
#include <vector>

#include "tern/result.h"

namespace tern::llm {

class PagePool {
 public:
  // Whole pages for each sequence, and no token more than `context` in any.
  PagePool(uint32_t sequences, uint32_t context, uint32_t page);

  // Makes room for `tokens` in all; refuses with the number that fits.
  Status reserve(uint32_t sequence, uint64_t tokens);
  // Gives back what lies behind the first `tokens`.
  void truncate(uint32_t sequence, uint32_t tokens);
  int32_t slot(uint32_t sequence, uint32_t position) const;
  const std::vector<int32_t>& pages(uint32_t sequence) const { return held_[sequence]; }

 private:
  uint32_t context_, page_;
  std::vector<std::vector<int32_t>> held_;
  std::vector<int32_t> free_;
};

}  // namespace tern::llm
