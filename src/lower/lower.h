// Graph -> Program: partition, fuse, choose, memory. Sees candidates as data; includes neither kernels nor backends.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/caps.h"
#include "graph/op.h"
#include "passes/pass.h"
#include "program/candidate.h"
#include "program/program.h"
#include "tern/tune/tuning.h"

namespace tern {

struct LowerOptions {
  std::vector<Bounds> ranges;  // tried in order; a last one without conditions is added where it is missing
  Policy policy;
  const Tuning* tuning = nullptr;  // of kernels' variants; null: the usual ones
  // Inner values of the graph that leave under a name beside the outputs; a session may leave them unread.
  std::vector<std::pair<std::string, Value>> taps;
};

// The graph has been through the passes. An error names the node and carries every candidate's refusal. Not thread-safe
// for graphs that share a DimTable: sizes are added to it.
Result<Program> lower(const Graph& graph, std::span<const Candidate> candidates, const Caps& caps,
                      const LowerOptions& options);

// What passes ask: would some candidate take this node as a Problem of its own?
struct TakesCtx {
  std::span<const Candidate> candidates;
  const Caps* caps = nullptr;
  Policy policy;
};
OrRefuse<Bid> takes(const void* takes_ctx, const Graph& graph, Value value);

// The grouping as text, for goldens: each group with its Problem, expressions and outputs. Every fusion is taken.
Result<std::string> groups_text(const Graph& graph, const Caps& caps);

}  // namespace tern
