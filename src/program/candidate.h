// Candidates: what can solve a Problem, as data. Authored kernels, native overrides and library calls are alike.
#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "core/caps.h"
#include "program/problem.h"
#include "program/program.h"
#include "tern/result.h"

namespace tern {

struct Asked {
  const Caps& caps;
  DimTable& dims;
};

struct Bid {
  std::vector<Layout> layouts;  // one an operand
  Hash numerics;                // equal numerics: bit-equal rows, whatever the layout, range or split
  double bytes = 0, flop = 0, seconds = 0;
  int launches = 1;
  Dim scratch;                     // bytes of a launch's own temporary
  std::string variant;             // the candidate's own words for its parameters: "r64 m4"; printed by explain
  std::array<int32_t, 4> param{};  // what build makes of them
};

// What build writes through: a candidate names operands; lower knows the buffers.
class BuildCtx {
 public:
  explicit BuildCtx(Asked a) : asked(a) {}
  virtual ~BuildCtx() = default;
  Asked asked;
  virtual Use whole(uint16_t operand) = 0;
  virtual Use window(uint16_t operand, Dim byte_offset, Dim bytes) = 0;
  virtual Use scratch(Dim bytes) = 0;          // one temporary a call, alive over this Problem's steps
  virtual KernelId kernel(KernelDef def) = 0;  // equal definitions give one id
  virtual void step(Step step) = 0;            // problem, label and device are filled in by lower
};

struct Candidate {
  std::string_view name;
  Family family;
  // Every layout it could live with, cheapest first, and for each the variants of equal numerics that may be faster on
  // some machine, the usual one first (`tern tune` times them); or why not.
  OrRefuse<std::vector<Bid>> (*bid)(const Problem& problem, const Asked& asked);
  Status (*build)(const Problem& problem, const Bid& bid, BuildCtx& ctx);
};

// Given a run of steps, one launch that replaces them (persistent decode); compared like any candidate.
struct StepFuser {
  std::string_view name;
  OrRefuse<Bid> (*bid)(const Program& program, std::span<const Step> steps, const Asked& asked);
  Status (*build)(const Program& program, std::span<const Step> steps, const Bid& bid, BuildCtx& ctx);
};

// Whether an operand fits one binding at every size of the bounds; a refusal names the largest value of each symbol
// that would fit.
OrRefuse<Unit> fits_binding(uint16_t index, const Operand& operand, const Layout& layout, const Bounds& bounds,
                            const Asked& asked);
// How many windows an operand needs under the caps' binding limit: 1 for what fits; a refusal with the largest size
// that would fit where its windowed axis is symbolic or it cannot be cut. bounds: of the Problem.
OrRefuse<int> window_count(const Operand& operand, const Layout& layout, const Bounds& bounds, const Asked& asked);
// Calls each(first_unit, units, use) for every window of a constant-sized operand that window_count accepts.
Status for_windows(const Problem& problem, uint16_t operand, const Layout& layout, BuildCtx& ctx,
                   const std::function<Status(int64_t first_unit, int64_t units, Use use)>& each);

}  // namespace tern
