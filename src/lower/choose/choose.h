// Which candidate solves each group in each range, and in which layout every value is stored.
#pragma once

#include "lower/choose/ask.h"
#include "tern/tune/tuning.h"

namespace tern::lowering {

struct Pick {
  const Candidate* candidate = nullptr;
  Bid bid;
  Problem problem;  // at the range, with the layouts decided
  std::vector<std::pair<std::string, std::string>> refusals;
};

struct Chosen {
  std::vector<Group> groups;                 // fuse's, with further outputs and convert groups
  std::vector<Pick> picks;                   // one a different Problem and range
  std::vector<std::vector<uint32_t>> which;  // [range][group]: a pick
};

// In this order: one numerics tag a Problem over all ranges, one layout a stored value over all its uses, the cheapest,
// then activation forms. An error names the group and carries every refusal.
// tuning: which of a bid's variants; null: the first.
Result<Chosen> choose(Grouping& grouping, Asker& asker, const Tuning* tuning);

}  // namespace tern::lowering
