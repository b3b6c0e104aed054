#include "lower/choose.h"

#include <algorithm>
#include <limits>
#include <set>

namespace tern::lowering {
namespace {

struct Offer {
  const Candidate* candidate;
  Bid bid;
};
struct Answer {
  std::vector<Offer> offers;
  std::vector<std::pair<std::string, std::string>> refusals;
};

bool fits(const Problem& problem, const Bid& bid) {
  if (bid.layouts.size() != problem.operands.size()) return false;
  for (size_t i = 0; i < bid.layouts.size(); ++i) {
    if (problem.operands[i].layout && bid.layouts[i] != problem.operands[i].layout) return false;
    if (!bid.layouts[i]) return false;
  }
  return true;
}

class Chooser {
 public:
  Chooser(const Graph& graph, Grouping& grouping, std::span<const Candidate> candidates, const Caps& caps, const std::vector<Bounds>& ranges,
          const Policy& policy)
      : graph_(graph), dims_(*graph.dims), grouping_(grouping), candidates_(candidates), caps_(caps), ranges_(ranges), policy_(policy) {}

  Result<Chosen> run() {
    out_.groups = std::move(grouping_.groups);
    for (Group& g : out_.groups) fix_plain_layouts(g);
    tags_.resize(out_.groups.size());
    for (size_t g = 0; g < out_.groups.size(); ++g) TERN_OK(choose_tag(g));
    choose_weights();
    TERN_OK(activation_forms());
    out_.picks.resize(ranges_.size());
    for (size_t r = 0; r < ranges_.size(); ++r) {
      for (size_t g = 0; g < out_.groups.size(); ++g) {
        TERN_TRY(Pick pick, cheapest(g, r));
        out_.picks[r].push_back(std::move(pick));
      }
    }
    return std::move(out_);
  }

 private:
  // States, inputs and results start out dense; parameters and what is read of temporaries is for the bids to say.
  void fix_plain_layouts(Group& g) {
    for (Operand& o : g.problem.operands) {
      const bool free = o.access == Access::read && (o.origin == Origin::param || o.origin == Origin::temp);
      if (!free) o.layout = {&kDense, {}};
    }
  }

  const Answer& ask(const Problem& problem) {
    const Hash key = problem_hash(problem, dims_, true);
    if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
    Answer answer;
    const Asked asked{caps_, dims_};
    for (const Candidate& c : candidates_) {
      if (c.family != problem.family) continue;
      auto bids = c.bid(problem, asked);
      if (!bids) {
        answer.refusals.emplace_back(c.name, bids.why());
        continue;
      }
      bool any = false;
      for (Bid& bid : *bids) {
        if (!fits(problem, bid)) continue;
        any = true;
        answer.offers.push_back({&c, std::move(bid)});
      }
      if (!any) answer.refusals.emplace_back(c.name, "none of its layouts is the one that is stored");
    }
    return memo_.emplace(key, std::move(answer)).first->second;
  }
  // Hashing a Problem costs more than looking at its answer, so each group remembers its own until it changes.
  const Answer& ask(size_t g, size_t r) {
    if (answers_.size() < out_.groups.size()) answers_.resize(out_.groups.size());
    auto& mine = answers_[g];
    if (mine.empty()) mine.resize(ranges_.size());
    if (mine[r] == nullptr) mine[r] = &ask(at_range(dims_, out_.groups[g].problem, ranges_[r], policy_));
    return *mine[r];
  }
  void changed() { answers_.clear(); }

  Error nobody(size_t g, size_t r, const Answer& answer) {
    const Problem problem = at_range(dims_, out_.groups[g].problem, ranges_[r], policy_);
    std::string text = "no kernel of device '" + caps_.device + "' takes " + problem_text(problem, dims_);
    for (const auto& [name, why] : answer.refusals) text += "; " + name + ": " + why;
    if (answer.refusals.empty()) text += "; there is no candidate for this family";
    return make_error(Code::unsupported, text, out_.groups[g].label);
  }

  // One numerics tag over all ranges, so that the numbers of a row never depend on the range that computed it. Costs of a range
  // count relative to its best, or the largest range would decide alone.
  Status choose_tag(size_t g) {
    std::map<Hash, double> cost;
    std::map<Hash, size_t> seen;
    std::vector<Hash> order;
    for (size_t r = 0; r < ranges_.size(); ++r) {
      const Answer& answer = ask(g, r);
      if (answer.offers.empty()) return nobody(g, r, answer);
      std::map<Hash, double> best;
      double least = std::numeric_limits<double>::infinity();
      for (const Offer& o : answer.offers) {
        const auto [it, fresh] = best.emplace(o.bid.numerics, o.bid.seconds);
        it->second = std::min(it->second, o.bid.seconds);
        if (fresh && r == 0) order.push_back(o.bid.numerics);
        least = std::min(least, o.bid.seconds);
      }
      for (const auto& [tag, seconds] : best) {
        cost[tag] += least > 0 ? seconds / least : 1;
        ++seen[tag];
      }
    }
    std::optional<Hash> pick;
    for (const Hash& tag : order) {
      if (seen[tag] == ranges_.size() && (!pick || cost[tag] < cost[*pick])) pick = tag;
    }
    if (!pick) return make_error(Code::unsupported, "no kernel computes this with the same numbers in every range", out_.groups[g].label);
    tags_[g] = *pick;
    return ok();
  }

  // Cheapest seconds of the group over all ranges (relative) with operand i in the layout; nullopt: some range has no offer.
  std::optional<double> cost_with(size_t g, const std::vector<size_t>& operands, const Layout& layout) {
    double sum = 0;
    for (size_t r = 0; r < ranges_.size(); ++r) {
      double least = std::numeric_limits<double>::infinity(), best = least;
      for (const Offer& o : ask(g, r).offers) {
        if (o.bid.numerics != tags_[g]) continue;
        best = std::min(best, o.bid.seconds);
        const bool all = std::all_of(operands.begin(), operands.end(), [&](size_t i) { return o.bid.layouts[i] == layout; });
        if (all) least = std::min(least, o.bid.seconds);
      }
      if (least == std::numeric_limits<double>::infinity()) return std::nullopt;
      sum += best > 0 ? least / best : 1;
    }
    return sum;
  }

  struct Reader {
    size_t group;
    std::vector<size_t> operands;
  };

  // One layout for each parameter over all its uses; where its readers share none, each has its own copy, which explain shows.
  void choose_weights() {
    std::map<Value, std::vector<Reader>> readers;
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      for (size_t i = 0; i < out_.groups[g].values.size(); ++i) {
        if (out_.groups[g].problem.operands[i].origin != Origin::param) continue;
        auto& list = readers[out_.groups[g].values[i]];
        if (list.empty() || list.back().group != g) list.push_back({g, {}});
        list.back().operands.push_back(i);
      }
    }
    for (const auto& [value, list] : readers) {
      std::vector<Layout> seen;
      for (const Reader& reader : list) {
        for (size_t r = 0; r < ranges_.size(); ++r) {
          for (const Offer& o : ask(reader.group, r).offers) {
            const Layout& l = o.bid.layouts[reader.operands[0]];
            if (o.bid.numerics == tags_[reader.group] && std::find(seen.begin(), seen.end(), l) == seen.end()) seen.push_back(l);
          }
        }
      }
      const Layout* best = nullptr;
      double least = std::numeric_limits<double>::infinity();
      for (const Layout& layout : seen) {
        double sum = 0;
        for (const Reader& reader : list) {
          const auto cost = cost_with(reader.group, reader.operands, layout);
          sum += cost.value_or(std::numeric_limits<double>::infinity());
        }
        if (sum < least) {
          least = sum;
          best = &layout;
        }
      }
      for (const Reader& reader : list) {
        const Layout* mine = best;
        double own = std::numeric_limits<double>::infinity();
        if (mine == nullptr) {
          for (const Layout& layout : seen) {
            const auto cost = cost_with(reader.group, reader.operands, layout);
            if (cost && *cost < own) {
              own = *cost;
              mine = &layout;
            }
          }
        }
        if (mine == nullptr) continue;
        for (const size_t i : reader.operands) out_.groups[reader.group].problem.operands[i].layout = *mine;
        answers_[reader.group].clear();
      }
    }
  }

  Result<Pick> cheapest(size_t g, size_t r) {
    Problem problem = at_range(dims_, out_.groups[g].problem, ranges_[r], policy_);
    const Answer& answer = ask(g, r);
    const Offer* best = nullptr;
    for (const Offer& o : answer.offers) {
      if (o.bid.numerics == tags_[g] && (best == nullptr || o.bid.seconds < best->bid.seconds)) best = &o;
    }
    if (best == nullptr) return nobody(g, r, answer);
    for (size_t i = 0; i < problem.operands.size(); ++i) problem.operands[i].layout = best->bid.layouts[i];
    return Pick{best->candidate, best->bid, std::move(problem), answer.refusals};
  }

  bool offers_everywhere(const Problem& problem, const Hash& tag) {
    for (size_t r = 0; r < ranges_.size(); ++r) {
      const Answer& answer = ask(at_range(dims_, problem, ranges_[r], policy_));
      if (std::none_of(answer.offers.begin(), answer.offers.end(), [&](const Offer& o) { return o.bid.numerics == tag; })) return false;
    }
    return true;
  }

  // What readers want beyond dense: the producer writes it too, or one visible convert step does.
  Status activation_forms() {
    std::map<Value, std::vector<Layout>> wanted;
    std::set<Value> dense_wanted;
    for (const auto& [value, name] : grouping_.outputs) dense_wanted.insert(value);
    for (const auto& copy : grouping_.copies) dense_wanted.insert(copy.from);
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      Group& group = out_.groups[g];
      TERN_TRY(const Pick pick, cheapest(g, 0));
      for (size_t i = 0; i < group.values.size(); ++i) {
        Operand& o = group.problem.operands[i];
        if (o.access != Access::read || o.origin != Origin::temp) continue;
        o.layout = pick.bid.layouts[i];
        if (o.layout.def == &kDense) {
          dense_wanted.insert(group.values[i]);
          continue;
        }
        auto& list = wanted[group.values[i]];
        if (std::find(list.begin(), list.end(), o.layout) == list.end()) list.push_back(o.layout);
      }
    }
    changed();
    std::vector<Group> groups;
    std::vector<Hash> tags;
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      std::vector<Group> converts;
      for (size_t i = 0, n = out_.groups[g].values.size(); i < n; ++i) {
        if (out_.groups[g].problem.operands[i].access != Access::write) continue;
        const auto want = wanted.find(out_.groups[g].values[i]);
        if (want == wanted.end()) continue;
        for (const Layout& layout : want->second) {
          if (!write_as(g, i, layout, dense_wanted.contains(out_.groups[g].values[i]))) converts.push_back(convert_group(out_.groups[g], i, layout));
        }
      }
      groups.push_back(std::move(out_.groups[g]));
      tags.push_back(tags_[g]);
      for (Group& c : converts) {
        groups.push_back(std::move(c));
        tags.push_back({});
      }
    }
    out_.groups = std::move(groups);
    tags_ = std::move(tags);
    changed();
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      if (out_.groups[g].problem.family == Family::convert) TERN_OK(choose_tag(g));
    }
    return ok();
  }

  // Makes the producer write result i in the layout, beside or instead of the dense form. False: no candidate can.
  bool write_as(size_t g, size_t i, const Layout& layout, bool keep_dense) {
    Problem changed = out_.groups[g].problem;
    if (!keep_dense && changed.operands[i].layout.def == &kDense) {
      changed.operands[i].layout = layout;
      if (offers_everywhere(changed, tags_[g])) {
        out_.groups[g].problem = std::move(changed);
        return true;
      }
      return false;
    }
    Operand copy = changed.operands[i];
    copy.layout = layout;
    for (Part& part : changed.parts) {
      for (size_t o = 0; o < part.outs.size(); ++o) {
        if (part.outs[o].operand != i) continue;
        Output more = part.outs[o];
        more.operand = static_cast<uint16_t>(changed.operands.size());
        changed.operands.push_back(copy);
        part.outs.push_back(more);
        if (changed.operands.size() > caps_.max_bindings || !offers_everywhere(changed, tags_[g])) return false;
        out_.groups[g].values.push_back(out_.groups[g].values[i]);
        out_.groups[g].problem = std::move(changed);
        return true;
      }
    }
    return false;
  }

  Group convert_group(const Group& from, size_t i, const Layout& layout) {
    Group c;
    c.label = from.label + " (convert)";
    const Operand& value = from.problem.operands[i];
    Dim rows = 1;
    for (size_t a = 0; a + 1 < value.type.shape.size(); ++a) rows = dims_.mul(rows, value.type.shape[a]);
    c.problem.family = Family::convert;
    c.problem.desc = ConvertDesc{};
    c.problem.extent = {rows, value.type.shape.back()};
    c.problem.parts.resize(1);
    c.problem.parts[0].n = value.type.shape.back();
    Operand in = value, out = value;
    in.access = Access::read;
    in.role = Role::x;
    in.layout = {&kDense, {}};
    out.layout = layout;
    in.type.shape = out.type.shape = {rows, value.type.shape.back()};
    Output o;
    o.operand = 1;
    c.problem.parts[0].outs.push_back(o);
    c.problem.operands = {in, out};
    c.values = {from.values[i], from.values[i]};
    return c;
  }

  const Graph& graph_;
  DimTable& dims_;
  Grouping& grouping_;
  std::span<const Candidate> candidates_;
  const Caps& caps_;
  const std::vector<Bounds>& ranges_;
  const Policy& policy_;
  std::map<Hash, Answer> memo_;
  std::vector<std::vector<const Answer*>> answers_;  // [group][range]
  std::vector<Hash> tags_;
  Chosen out_;
};

void put(DimTable& dims, Dim& d, const Bounds& bounds) { d = dims.substitute(d, bounds); }
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

Result<Chosen> choose(const Graph& graph, Grouping& grouping, std::span<const Candidate> candidates, const Caps& caps,
                      const std::vector<Bounds>& ranges, const Policy& policy) {
  return Chooser(graph, grouping, candidates, caps, ranges, policy).run();
}

}  // namespace tern::lowering
