// Asks candidates about Problems, each once: what choose and fuse know of kernels.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lower/groups.h"
#include "program/candidate.h"

namespace tern::lowering {

struct Offer {
  const Candidate* candidate;
  Bid bid;
};
struct Answer {
  Problem problem;  // at its range
  std::vector<Offer> offers;
  std::vector<std::pair<std::string, std::string>> refusals;  // candidate, why
};
// One Problem in every range.
struct Answers {
  std::vector<Answer> range;
  std::optional<Hash> tag;  // of the numbers that every range can give, the cheapest; unset: there are none
};

class Asker {
 public:
  Asker(DimTable& dims, std::span<const Candidate> candidates, const Caps& caps, const std::vector<Bounds>& ranges,
        const Policy& policy)
      : dims_(dims), candidates_(candidates), caps_(caps), ranges_(ranges), policy_(policy), keys_(dims) {}

  // problem: sizes unbounded. The reference stays valid.
  const Answers& ask(const Problem& problem);
  // Would some candidate take it in every range, with the same numbers?
  bool taken(const Problem& problem);
  // What is written, and states, lie dense unless something else is said.
  static void settle(Problem& problem);
  // A Problem that brings a dense value into a layout.
  Problem convert(const TensorType& type, const Layout& layout) const;

  const std::vector<Bounds>& ranges() const { return ranges_; }
  const Caps& caps() const { return caps_; }
  DimTable& dims() const { return dims_; }

 private:
  Answer ask_range(Problem problem);
  // Layouts that it fixes are kept, and activations it wants in another form than dense can be brought there.
  bool usable(const Problem& problem, const Bid& bid);
  void choose_tag(Answers& answers) const;

  DimTable& dims_;
  std::span<const Candidate> candidates_;
  const Caps& caps_;
  const std::vector<Bounds>& ranges_;
  Policy policy_;
  ProblemKeys keys_;
  std::map<Hash, std::unique_ptr<Answers>> memo_;
};

// The Problem with the range's sizes put in.
Problem at_range(DimTable& dims, const Problem& problem, const Bounds& bounds, const Policy& policy);

}  // namespace tern::lowering
