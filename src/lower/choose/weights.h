#pragma once

#include "lower/choose/ask.h"

namespace tern::lowering {

// One layout for each parameter over all its uses, the cheapest in sum; where its readers share none, each has its own
// copy, which explain shows. Sets the operands' layouts.
void choose_weights(std::vector<Group>& groups, const std::vector<Hash>& tags, Asker& asker);

}  // namespace tern::lowering
