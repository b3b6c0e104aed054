// Where the time of a step goes, by kernel, place in the model and work of a step.
#pragma once

#include <string>
#include <vector>

#include "tern/llm.h"
#include "tools/tern/common/json.h"

namespace tern::tool {

struct ProfileRow {
  std::string kernel, label;  // layer numbers of labels become '*'
  uint32_t steps = 0;
  double seconds = 0, bytes = 0, flop = 0;
};

// Token ids for measuring: any, the same ones every time.
std::vector<TokenId> some_ids(uint32_t count, uint32_t vocabulary);
// Runs one step of the model over these tokens behind `depth` of those that it holds, profiled.
Result<std::vector<StepProfile>> run_profiled(LanguageModel& model, std::span<const TokenId> ids, uint32_t depth);
// The same by place; longest first.
Result<std::vector<ProfileRow>> profile_step(LanguageModel& model, std::span<const TokenId> ids, uint32_t depth);
void print_profile(const char* title, const std::vector<ProfileRow>& rows);
Json profile_json(const std::vector<ProfileRow>& rows);

}  // namespace tern::tool
