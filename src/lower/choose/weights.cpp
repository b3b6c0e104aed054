#include "lower/choose/weights.h"

#include <algorithm>
#include <limits>

namespace tern::lowering {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Reader {
  size_t group;
  std::vector<uint16_t> operands;
};
// What a decision depends on: equal layers have equal readers.
using Signature = std::vector<std::tuple<const Answers*, Hash, std::vector<uint16_t>>>;

class Weights {
 public:
  Weights(std::vector<Group>& groups, const std::vector<Hash>& tags, Asker& asker)
      : groups_(groups), tags_(tags), asker_(asker) {}

  void run() {
    std::map<Value, std::vector<Reader>> readers;
    for (size_t g = 0; g < groups_.size(); ++g) {
      answers_.push_back(&asker_.ask(groups_[g].problem));
      for (uint16_t i = 0; i < groups_[g].values.size(); ++i) {
        if (groups_[g].problem.operands[i].origin != Origin::param) continue;
        auto& list = readers[groups_[g].values[i]];
        if (list.empty() || list.back().group != g) list.push_back({g, {}});
        list.back().operands.push_back(i);
      }
    }
    // One after the other: what was decided for one weight of a launch binds the next.
    std::map<Signature, std::vector<Layout>> memo;
    for (const auto& [value, list] : readers) {
      Signature signature;
      for (const Reader& r : list) signature.emplace_back(answers_[r.group], tags_[r.group], r.operands);
      auto [it, fresh] = memo.try_emplace(std::move(signature));
      if (fresh) it->second = decide(list);
      for (size_t r = 0; r < list.size(); ++r) {
        Problem& p = groups_[list[r].group].problem;
        for (const uint16_t i : list[r].operands) p.operands[i].layout = it->second[r];
        answers_[list[r].group] = &asker_.ask(p);
      }
    }
  }

 private:
  // A layout for each reader.
  std::vector<Layout> decide(const std::vector<Reader>& list) {
    std::vector<Layout> seen;
    for (const Reader& reader : list) {
      for (const Answer& a : answers_[reader.group]->range) {
        for (const Offer& o : a.offers) {
          const Layout& l = o.bid.layouts[reader.operands[0]];
          if (o.bid.numerics == tags_[reader.group] && std::find(seen.begin(), seen.end(), l) == seen.end())
            seen.push_back(l);
        }
      }
    }
    Layout best;
    double least = kNever;
    std::vector<std::vector<double>> cost(list.size());
    for (const Layout& layout : seen) {
      double sum = 0;
      for (size_t r = 0; r < list.size(); ++r) {
        cost[r].push_back(cost_with(list[r], layout));
        sum += cost[r].back();
      }
      if (sum < least) least = sum, best = layout;
    }
    if (best) return std::vector<Layout>(list.size(), best);
    std::vector<Layout> out(list.size());
    for (size_t r = 0; r < list.size(); ++r) {
      double own = kNever;
      for (size_t l = 0; l < seen.size(); ++l) {
        if (cost[r][l] < own) own = cost[r][l], out[r] = seen[l];
      }
    }
    return out;
  }

  // Of the reader over all ranges, relative to its best, with the parameter in the layout.
  double cost_with(const Reader& reader, const Layout& layout) {
    const Answers& open = *answers_[reader.group];
    // A bid may name its favourite only; asked for another layout it may still say yes.
    Problem fixed = groups_[reader.group].problem;
    for (const uint16_t i : reader.operands) fixed.operands[i].layout = layout;
    const Answers& with = asker_.ask(fixed);
    double sum = 0;
    for (size_t r = 0; r < open.range.size(); ++r) {
      const double best = cheapest(open.range[r], tags_[reader.group]),
                   mine = cheapest(with.range[r], tags_[reader.group]);
      sum += mine == kNever ? kNever : best > 0 && best < kNever ? mine / best : 1;
    }
    return sum;
  }
  static double cheapest(const Answer& answer, const Hash& tag) {
    double least = kNever;
    for (const Offer& o : answer.offers) {
      if (o.bid.numerics == tag) least = std::min(least, o.bid.seconds);
    }
    return least;
  }

  std::vector<Group>& groups_;
  const std::vector<Hash>& tags_;
  Asker& asker_;
  std::vector<const Answers*> answers_;  // of each group, with what was decided so far
};

}  // namespace

void choose_weights(std::vector<Group>& groups, const std::vector<Hash>& tags, Asker& asker) {
  Weights(groups, tags, asker).run();
}

}  // namespace tern::lowering
