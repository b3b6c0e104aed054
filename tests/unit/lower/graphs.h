// Graphs that several tests lower. Each has been through the passes with the paper candidates.
#pragma once

#include "tern/graph.h"

namespace tern::test {

// The default passes, for candidates that take what the paper device takes.
Graph passed(Builder& b);
Graph mlp();
// Paged attention, rope, int8-able weights, sampling; symbols T, L, S, P as in the step contract.
Graph llama(int layers);
Graph reductions();
Graph concat_pad();
Graph negative_steps();
Graph states();

}  // namespace tern::test
