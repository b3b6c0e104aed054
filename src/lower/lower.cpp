#include "lower/lower.h"

#include <algorithm>

#include "lower/fuse/fuse.h"
#include "lower/fuse/make/anchors.h"
#include "lower/memory/access.h"
#include "lower/memory/build.h"
#include "lower/partition.h"
#include "lower/text.h"

namespace tern {

using namespace lowering;

namespace {

// The checker shares no code with the planner and costs little; a wrong plan would be silent.
Status check_lists(const Program& program, const Caps& caps) {
  const auto check = [&](uint32_t list, const Bounds& bounds) -> Status {
    std::vector<int64_t> top;
    for (const Symbol& s : program.dims->symbols()) top.push_back(s.max);
    for (const Bound& b : bounds) top[b.symbol] = std::min(top[b.symbol], b.max);
    TERN_TRY(const MemoryPlan plan, plan_range(program, list, bounds, caps.offset_alignment));
    return check_memory(program, list, plan, top);
  };
  for (const RangeDef& range : program.ranges) TERN_OK(check(range.list, range.when));
  if (program.prepare_list != kNone) TERN_OK(check(program.prepare_list, {}));
  return ok();
}

Result<Program> lower_graph(const Graph& graph, std::span<const Candidate> candidates, const Caps& caps,
                            const LowerOptions& options) {
  std::vector<Bounds> ranges = options.ranges;
  if (ranges.empty() || !ranges.back().empty()) ranges.push_back({});
  Asker asker(*graph.dims, candidates, caps, ranges, options.policy);
  const std::vector<DeviceId> device = partition(graph, caps);
  TERN_TRY(Grouping grouping, fuse(graph, device, caps, [&](const Problem& p) { return asker.taken(p); }));
  TERN_TRY(const Chosen chosen, choose(grouping, asker, options.tuning));
  TERN_TRY(Program program, build_program(graph, grouping, chosen, caps, ranges));
  if (!caps.mixed_access) bind_mixed_read_write(program);
  TERN_OK(check_lists(program, caps));
  split_at_binds(program);
  return program;
}

}  // namespace

Result<Program> lower(const Graph& graph, std::span<const Candidate> candidates, const Caps& caps,
                      const LowerOptions& options) {
  for (const Bounds& bounds : options.ranges) {
    for (const Bound& b : bounds) {
      if (b.symbol >= graph.dims->symbols().size() || b.min > b.max)
        return make_error(Code::invalid, "a range names no symbol of the graph, or is empty");
      const Symbol& symbol = graph.dims->symbols()[b.symbol];
      if (symbol.late)
        return make_error(Code::invalid, "a range is taken before the late size " + symbol.name + " is known");
    }
  }
  if (options.taps.empty()) return lower_graph(graph, candidates, caps, options);
  Graph tapped = graph.clone();
  for (const auto& [name, value] : options.taps) TERN_OK(tapped.output(name, value));
  TERN_TRY(Program program, lower_graph(tapped, candidates, caps, options));
  for (IoDef& io : program.io.io) {
    for (const auto& [name, value] : options.taps)
      io.optional_read = io.optional_read || (io.kind == IoDef::Kind::output && io.name == name);
  }
  return program;
}

OrRefuse<Bid> takes(const void* takes_ctx, const Graph& graph, Value value) {
  const auto& ctx = *static_cast<const TakesCtx*>(takes_ctx);
  const Node& node = graph.node(value.node);
  if (node.op->scalar >= 0 || node.op->view != nullptr || node.op->kind == OpKind::leaf) return Bid{};
  const AnchorFn make = find_anchor(node.op->name);
  if (make == nullptr) return refuse("op " + std::string(node.op->name) + " has no kernel family");
  auto anchor = make(graph, *graph.dims, value.node);
  if (!anchor) return refuse(anchor.error().text);
  Problem problem = standalone(graph, *anchor);
  problem.policy = ctx.policy;
  Asker::settle(problem);
  std::string why;
  for (const Candidate& c : ctx.candidates) {
    if (c.family != problem.family) continue;
    auto bids = c.bid(problem, Asked{*ctx.caps, *graph.dims});
    if (bids && !bids->empty()) return std::move((*bids)[0]);
    why += (why.empty() ? "" : "; ") + std::string(c.name) + ": " + (bids ? "no bid" : bids.why());
  }
  return refuse(why.empty() ? "there is no candidate for " + std::string(family_name(problem.family)) : why);
}

Result<std::string> groups_text(const Graph& graph, const Caps& caps) {
  const std::vector<DeviceId> device = partition(graph, caps);
  TERN_TRY(const Grouping grouping, fuse(graph, device, caps, [](const Problem&) { return true; }));
  return grouping_text(graph, grouping);
}

}  // namespace tern
