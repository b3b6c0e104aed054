// Which variant of a kernel solves a problem: tiles, vectors and the like, as they were measured on one machine. All
// variants of a kernel give the same numbers, so a tuning changes speed only.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/result.h"

namespace tern {

// One decision. Kernel, problem and variant are named as in Explanation and StepProfile.
struct TunedKernel {
  std::string kernel, problem, variant;
  double seconds = 0, usual_seconds = 0;  // of one step in this variant, and in the one that is taken untuned
};

// Immutable but for add; const members from any thread.
class Tuning {
 public:
  Tuning() = default;  // the usual variants
  // The n-th variant of every kernel, or its last: for measuring.
  static Tuning trial(size_t n);

  void add(TunedKernel kernel);  // replaces what is known of the kernel and problem
  const std::vector<TunedKernel>& kernels() const { return kernels_; }

  // variants: in the kernel's own words, the usual one first; at least one. The index of the one to take.
  size_t choose(std::string_view kernel, std::string_view problem, std::span<const std::string> variants) const;

  // As text, a line a kernel, for the device of this name. parse gives Code::malformed with the line as offset, and
  // Code::not_found where the text is of another device.
  std::string text(std::string_view device) const;
  static Result<Tuning> parse(std::string_view text, std::string_view device);

 private:
  std::vector<TunedKernel> kernels_;
  std::map<std::pair<std::string, std::string>, size_t> at_;  // kernel, problem
  size_t trial_ = 0;
};

}  // namespace tern
