// How the next token is chosen: options shared by the verbs that generate text.
#pragma once

#include "tern/llm.h"
#include "tools/tern/common/verb.h"

namespace tern::tool {

void add_sampling_flags(CommandLine& line, SamplingOptions& sampling);
// Code::invalid names the option.
Status check_sampling_flags(const SamplingOptions& sampling);

}  // namespace tern::tool
