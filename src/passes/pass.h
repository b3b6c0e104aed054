// A pass is a named function over one graph. The pipeline in pipeline.cpp is the only place that orders them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/caps.h"
#include "graph/op.h"
#include "program/candidate.h"

namespace tern {

struct Target {
  const Caps* caps = nullptr;
  const void* ctx = nullptr;
  // Would some candidate take the node that makes this value, as it is? There is no other support table.
  OrRefuse<Bid> (*takes)(const void* ctx, const Graph& graph, Value value) = nullptr;
};

struct Pass {
  std::string_view name;
  Status (*run)(Graph& graph, const Target& target);
};

struct PassOptions {
  std::vector<std::string> skip;
  bool verify = false;                                               // after every pass
  std::function<void(std::string_view pass, const Graph&)> changed;  // called only when the graph changed
};
struct PassTiming {
  std::string_view name;
  double seconds = 0;
  bool changed = false;
};

std::span<const Pass> default_passes();
Result<std::vector<PassTiming>> run_passes(Graph& graph, const Target& target, std::span<const Pass> passes,
                                           const PassOptions& options = {});

}  // namespace tern
