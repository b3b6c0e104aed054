#include "lower/choose/ask.h"

#include <algorithm>
#include <limits>

namespace tern::lowering {
namespace {

void put(DimTable& dims, Dim& d, const Bounds& bounds) {
  if (d.is_expr()) d = dims.substitute(d, bounds);
}
void put(DimTable& dims, IndexMap& map, const Bounds& bounds) {
  put(dims, map.offset, bounds);
  for (Dim& d : map.stride) put(dims, d, bounds);
}
void put(DimTable& dims, ScalarExpr& expr, const Bounds& bounds) {
  for (ScalarExpr::Load& l : expr.loads) put(dims, l.map, bounds);
  for (Dim& d : expr.dims) put(dims, d, bounds);
}

}  // namespace

Problem at_range(DimTable& dims, const Problem& problem, const Bounds& bounds, const Policy& policy) {
  Problem p = problem;
  p.bounds = bounds;
  p.policy = policy;
  if (bounds.empty()) return p;
  for (Operand& o : p.operands) {
    for (Dim& d : o.type.shape) put(dims, d, bounds);
  }
  for (Dim& d : p.extent) put(dims, d, bounds);
  put(dims, p.prologue, bounds);
  for (Part& part : p.parts) {
    put(dims, part.n, bounds);
    put(dims, part.epilogue, bounds);
    for (Output& o : part.outs) put(dims, o.map, bounds);
  }
  return p;
}

void Asker::settle(Problem& problem) {
  for (Operand& o : problem.operands) {
    if (o.access != Access::read && !o.layout) o.layout = {&kDense, {}};
  }
}

Problem Asker::convert(const TensorType& type, const Layout& layout) const {
  Problem p;
  Dim rows = 1;
  for (size_t a = 0; a + 1 < type.shape.size(); ++a) rows = dims_.mul(rows, type.shape[a]);
  const Dim columns = type.shape.empty() ? Dim(1) : type.shape.back();
  p.family = Family::convert;
  p.desc = ConvertDesc{};
  p.extent = {rows, columns};
  p.parts.resize(1);
  p.parts[0].n = columns;
  TensorType flat = type;
  flat.shape = {rows, columns};
  p.operands = {{flat, Role::x, Origin::temp, Access::read, {&kDense, {}}},
                {flat, Role::out, Origin::temp, Access::write, layout}};
  Output out;
  out.operand = 1;
  p.parts[0].outs = {out};
  return p;
}

bool Asker::usable(const Problem& problem, const Bid& bid) {
  if (bid.layouts.size() != problem.operands.size()) return false;
  for (size_t i = 0; i < bid.layouts.size(); ++i) {
    const Operand& o = problem.operands[i];
    if (!bid.layouts[i] || (o.layout && bid.layouts[i] != o.layout)) return false;
    if (o.layout || o.origin == Origin::param || bid.layouts[i].def == &kDense) continue;
    if (o.access != Access::read || !taken(convert(o.type, bid.layouts[i]))) return false;
  }
  return true;
}

Answer Asker::ask_range(Problem problem) {
  Answer answer;
  answer.problem = std::move(problem);
  const Asked asked{caps_, dims_};
  for (const Candidate& c : candidates_) {
    if (c.family != answer.problem.family) continue;
    auto bids = c.bid(answer.problem, asked);
    if (!bids) {
      answer.refusals.emplace_back(c.name, bids.why());
      continue;
    }
    const size_t before = answer.offers.size();
    bool good = false;
    for (Bid& bid : *bids) {
      // Variants lie alike.
      if (answer.offers.size() == before || bid.layouts != answer.offers.back().bid.layouts)
        good = usable(answer.problem, bid);
      if (good) answer.offers.push_back({&c, std::move(bid)});
    }
    if (answer.offers.size() == before)
      answer.refusals.emplace_back(c.name, "wants a layout that nobody makes, or another than the stored one");
  }
  return answer;
}

// Costs of a range count relative to its best, or the largest range would decide alone.
void Asker::choose_tag(Answers& answers) const {
  struct Sum {
    double cost = 0;
    size_t ranges = 0;
  };
  std::vector<std::pair<Hash, Sum>> sums;  // in the order of offers, which breaks ties
  for (const Answer& answer : answers.range) {
    std::map<Hash, double> best;
    double least = std::numeric_limits<double>::infinity();
    for (const Offer& o : answer.offers) {
      const auto [it, fresh] = best.emplace(o.bid.numerics, o.bid.seconds);
      it->second = std::min(it->second, o.bid.seconds);
      least = std::min(least, o.bid.seconds);
      const bool known =
          std::any_of(sums.begin(), sums.end(), [&](const auto& s) { return s.first == o.bid.numerics; });
      if (!known) sums.push_back({o.bid.numerics, {}});
    }
    for (auto& [tag, sum] : sums) {
      const auto it = best.find(tag);
      if (it == best.end()) continue;
      sum.cost += least > 0 ? it->second / least : 1;
      ++sum.ranges;
    }
  }
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [tag, sum] : sums) {
    if (sum.ranges != answers.range.size() || sum.cost >= least) continue;
    least = sum.cost;
    answers.tag = tag;
  }
}

const Answers& Asker::ask(const Problem& problem) {
  const Hash key = keys_.key(problem, true);
  if (const auto it = memo_.find(key); it != memo_.end()) return *it->second;
  auto answers = std::make_unique<Answers>();
  for (const Bounds& bounds : ranges_) answers->range.push_back(ask_range(at_range(dims_, problem, bounds, policy_)));
  choose_tag(*answers);
  return *memo_.emplace(key, std::move(answers)).first->second;
}

bool Asker::taken(const Problem& problem) {
  Problem settled = problem;
  settle(settled);
  return ask(settled).tag.has_value();
}

}  // namespace tern::lowering
