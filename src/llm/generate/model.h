#pragma once

#include <array>
#include <map>

#include "llm/generate/pages.h"
#include "tern/llm.h"

namespace tern {

struct LanguageModel::Impl {
  LlmOptions options;
  LlmInfo info;
  StepShape shape;
  uint32_t context;  // tokens a sequence may hold; the last page may have room for more
  Tokenizer tokenizer;
  Executable executable;
  Session session;
  llm::PagePool pages;
  std::vector<uint32_t> lengths;             // tokens of each sequence
  std::vector<std::vector<TokenId>> tokens;  // the same, by id
  std::map<std::string, IoId, std::less<>> ids;

  // The inputs of one step; kept, so that a step allocates nothing once warm.
  struct Inputs {
    std::vector<int32_t> ids, position, slot, row_start, kv_length, pages, rows, history;
    std::vector<float> settings;
    std::vector<uint32_t> seeds;
    std::vector<bool> seen;  // sequences of the step
  } in;

  Status check(std::span<const SequenceStep> steps);
  Status fill(std::span<const SequenceStep> steps);
  void add_row(const SequenceStep& step, int32_t row);
  // Feeds a prompt behind its first `kept` tokens in chunks; what its last token gives.
  Result<StepResult> prefill(uint32_t sequence, std::span<const TokenId> prompt, size_t kept,
                             const GenerateOptions& options);
  Result<std::vector<StepResult>> run(std::span<const SequenceStep> steps, bool want_logits, const CancelToken* cancel);
};

}  // namespace tern
