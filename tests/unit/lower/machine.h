// A device of paper for tests of lower: candidates that take every Problem by interpreting it in f64, and a runner that
// walks a Program's lists over a poisoned arena with the steps of a phase shuffled.
#pragma once

#include <map>
#include <random>
#include <span>
#include <string>

#include "graph/op.h"
#include "program/candidate.h"
#include "program/program.h"

namespace tern::test {

// Everything dense. Rows of act_int8 are written where the Problem asks for them.
std::span<const Candidate> plain_candidates();
// Matmuls that read x as int8 blocks, and the convert steps that this needs, beside the rest.
std::span<const Candidate> int8_candidates();

// How often bids were asked for since the last call.
int asked();

struct Machine {
  const Program& program;
  std::mt19937 rng{1};
  std::map<BufferId, std::vector<std::byte>> own;  // inputs, outputs, params, states

  explicit Machine(const Program& p) : program(p) {}
  // Params are given before the first run; prepare runs with them.
  Status set(std::string_view name, const RefTensor& value);
  Result<RefTensor> get(std::string_view name, std::span<const int64_t> symbols) const;
  Status prepare();
  // Picks the range, plans memory, checks the plan, runs.
  Status run(std::span<const int64_t> symbols);
  size_t range_of(std::span<const int64_t> symbols) const;

 private:
  Status run_list(uint32_t list, std::span<const int64_t> symbols);
};

}  // namespace tern::test
