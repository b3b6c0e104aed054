// What both attention ops check and compute alike.
#pragma once

#include <optional>
#include <vector>

#include "ops/common/numbers.h"
#include "ops/common/rules.h"

namespace tern {

// scale, causal, window, soft_cap: attributes [first, first + 4) of either op.
Status check_attention(const InferCtx& ctx, size_t first);
// Heads and sizes of q [.., Hq, D] against k [.., Hk, D] and v [.., Hk, Dv]; constants all.
Status check_heads(InferCtx& ctx);
// The mask is bool or float.
Status check_mask(InferCtx& ctx, size_t input);
Status check_sinks(InferCtx& ctx, size_t input, Dim heads);

// Scores of one query head over its visible keys, turned into weights in place; sink: one more score without a value.
// No keys: nothing is changed.
void attention_weights(std::vector<double>& scores, std::optional<double> sink);
double capped(double score, double soft_cap);

}  // namespace tern
