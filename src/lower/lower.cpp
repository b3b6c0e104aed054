#include "lower/lower.h"

#include <algorithm>

#include "lower/build.h"

namespace tern {

using namespace lowering;

Result<Program> lower(const Graph& graph, std::span<const Candidate> candidates, const Caps& caps, const LowerOptions& options) {
  std::vector<Bounds> ranges = options.ranges;
  if (ranges.empty() || !ranges.back().empty()) ranges.push_back({});
  TERN_TRY(Grouping grouping, fuse(graph, caps));
  TERN_TRY(const Chosen chosen, choose(graph, grouping, candidates, caps, ranges, options.policy));
  TERN_TRY(Program program, build_program(graph, grouping, chosen, caps, ranges));
  // The checker shares no code with the planner and costs little; a wrong plan would be silent.
  for (const RangeDef& range : program.ranges) {
    std::vector<int64_t> top;
    for (const Symbol& s : program.dims->symbols()) top.push_back(s.max);
    for (const Bound& b : range.when) top[b.symbol] = std::min(top[b.symbol], b.max);
    TERN_TRY(const MemoryPlan plan, plan_memory(program, range.list, top, std::max(64u, caps.offset_alignment)));
    TERN_OK(check_memory(program, range.list, plan, top));
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
  Problem problem = std::move(anchor->problem);
  problem.policy = ctx.policy;
  for (size_t i = 0; i < anchor->inputs.size(); ++i) {
    Operand o;
    o.type = anchor->inputs[i].type;
    o.role = anchor->inputs[i].role;
    const OpDef* op = graph.node(anchor->inputs[i].value.node).op;
    o.origin = op == &kParamOp || op == &kConstantOp ? Origin::param : op == &kStateOp ? Origin::state : Origin::temp;
    o.access = anchor->in_place && i == 0 ? Access::update : Access::read;
    problem.operands.push_back(o);
  }
  if (!anchor->in_place) {
    for (const TensorType& type : anchor->outs) {
      Output out;
      out.operand = static_cast<uint16_t>(problem.operands.size());
      problem.parts[0].outs.push_back(out);
      Operand o;
      o.type = type;
      o.role = Role::out;
      o.access = Access::write;
      o.layout = {&kDense, {}};
      problem.operands.push_back(o);
    }
  }
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
  TERN_TRY(const Grouping grouping, fuse(graph, caps));
  std::string out;
  for (const Group& group : grouping.groups) out += group.label + ": " + problem_text(group.problem, *graph.dims) + "\n";
  for (const auto& copy : grouping.copies) out += "copy " + copy.name + (copy.state ? " (state)" : "") + "\n";
  return out;
}

}  // namespace tern
