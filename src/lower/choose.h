// Which candidate solves each group in each range, and in which layout every value is stored.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lower/groups.h"
#include "lower/lower.h"

namespace tern::lowering {

struct Pick {
  const Candidate* candidate = nullptr;
  Bid bid;
  Problem problem;  // at the range, with the layouts decided
  std::vector<std::pair<std::string, std::string>> refusals;
};

struct Chosen {
  std::vector<Group> groups;              // fuse's, with further outputs and convert groups
  std::vector<std::vector<Pick>> picks;   // [range][group]
};

Result<Chosen> choose(const Graph& graph, Grouping& grouping, std::span<const Candidate> candidates, const Caps& caps,
                      const std::vector<Bounds>& ranges, const Policy& policy);

// The group's Problem with the range's sizes put in.
Problem at_range(DimTable& dims, const Problem& problem, const Bounds& bounds, const Policy& policy);

}  // namespace tern::lowering
