#include "llm/generate/pages.h"

#include <string>

namespace tern::llm {

PagePool::PagePool(uint32_t sequences, uint32_t context, uint32_t page)
    : context_(context), page_(page), held_(sequences) {
  for (uint32_t i = sequences * ((context + page - 1) / page); i-- > 0;) free_.push_back(static_cast<int32_t>(i));
}

Status PagePool::reserve(uint32_t sequence, uint64_t tokens) {
  std::vector<int32_t>& held = held_[sequence];
  if (tokens > context_) {
    return Error{Code::limit,
                 "a sequence of " + std::to_string(tokens) + " tokens exceeds the context of " +
                     std::to_string(context_) + "; open the model with a larger context (--ctx)",
                 {},
                 tokens,
                 context_};
  }
  while (held.size() * page_ < tokens) {
    held.push_back(free_.back());
    free_.pop_back();
  }
  return ok();
}

void PagePool::truncate(uint32_t sequence, uint32_t tokens) {
  std::vector<int32_t>& held = held_[sequence];
  const uint32_t keep = (tokens + page_ - 1) / page_;
  while (held.size() > keep) {
    free_.push_back(held.back());
    held.pop_back();
  }
}

int32_t PagePool::slot(uint32_t sequence, uint32_t position) const {
  return held_[sequence][position / page_] * static_cast<int32_t>(page_) + static_cast<int32_t>(position % page_);
}

}  // namespace tern::llm
