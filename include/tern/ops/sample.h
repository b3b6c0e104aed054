// Choosing the next token on the device.
#pragma once

#include "tern/graph.h"

namespace tern {

// Columns of `settings`, per row.
enum class SampleSetting : uint8_t {
  temperature,        // 0 or less: the largest logit after penalties
  top_k,              // keep this many; 0 or less: all
  top_p,              // keep the smallest set of this probability; 1 or more: all
  min_p,              // keep what has at least this share of the best one's probability; 0 or less: all
  repeat_penalty,     // 1 (or 0 and less): none
  frequency_penalty,  // 0: none
  presence_penalty,   // 0: none
  reserved,           // not read
  count_,
};

// logits [L, V] f32, settings [L, 8] f32, history [L, H] i32 (ids; what is negative or not below V counts as empty),
// seeds [L, 4] u32 (Philox key low, key high, counter low, counter high) give ids [L] i32. A row is worked on in this
// order:
//  1. penalties: an id that stands n > 0 times in the history gets logit / repeat if the logit is above 0, logit *
//  repeat if not,
//     then minus n * frequency, minus presence;
//  2. a temperature of 0 or less: the id of the largest logit, the lowest id among equals; nothing below applies;
//  3. top-k: the k largest logits stay, lower ids first among equals;
//  4. top-p: softmax over what stayed (temperature 1); going down from the most probable, lower ids first among equals,
//  ids stay until
//     their sum has reached p, the one that reaches it included;
//  5. min-p: of these stay those with logit >= best + ln(min_p);
//  6. temperature: weight exp((logit - best) / temperature);
//  7. draw: u = (w >> 8) / 2^24, w the first word of Philox4x32-10 (Salmon et al. 2011) at counter {low, high, 0, 0};
//  walking up in the
//     order of ids, the first whose running sum of weights is above u * total. The best one always stays.
// A logit that is -inf or NaN is never chosen; a row without any other gives -1. Same inputs, same id: the randomness
// is all in seeds.
Value sample(Builder& b, Value logits, Value settings, Value history, Value seeds);

}  // namespace tern
