// Graph -> Program: partition, fuse, choose, memory. Sees candidates as data; includes neither kernels nor backends.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/caps.h"
#include "graph/op.h"
#include "passes/pass.h"
#include "program/candidate.h"
#include "program/program.h"

namespace tern {

struct LowerOptions {
  std::vector<Bounds> ranges;  // tried in order; a last one without conditions is added where it is missing
  Policy policy;
};

// The graph has been through the passes. An error names the node and carries every candidate's refusal.
Result<Program> lower(const Graph& graph, std::span<const Candidate> candidates, const Caps& caps, const LowerOptions& options);

// What passes ask: would some candidate take this node as a Problem of its own?
struct TakesCtx {
  std::span<const Candidate> candidates;
  const Caps* caps = nullptr;
  Policy policy;
};
OrRefuse<Bid> takes(const void* takes_ctx, const Graph& graph, Value value);

// The grouping as text, for goldens: one line a group.
Result<std::string> groups_text(const Graph& graph, const Caps& caps);

}  // namespace tern
