// Finds the fastest variants of kernels on this machine. The caller runs its program under trial after trial and gives
// the profiles; the tuner keeps the times and tells what is worth taking.
//
//   Tuner tuner;
//   for (size_t n = 0;; ++n) {
//     // compile with Options::tuning = Tuning::trial(n), run some times with set_profiling(true)
//     if (!tuner.add(session.profile())) break;   // after the first run of a trial: nothing that was not there before
//   }
//   save_tuning(device, tuner.merged(*load_tuning(device)));
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tern/session.h"
#include "tern/tune/tuning.h"

namespace tern {

class Tuner {
 public:
  // The steps of one run. True where a variant came up that was not there before. Single-threaded.
  bool add(std::span<const StepProfile> profile);
  // Of every kernel and problem whose fastest variant takes at most 1 - margin of the usual one's time (that of the
  // first run), by the medians of all steps.
  Tuning best(double margin = 0.03) const;
  // What was kept before, with all that was timed now decided anew.
  Tuning merged(const Tuning& kept, double margin = 0.03) const;
  // Variants that have been timed, of all kernels and problems that have more than one.
  size_t variants() const;

 private:
  struct Times {
    std::string usual;
    std::map<std::string, std::vector<double>> of;  // variant: seconds of each step
  };
  std::map<std::pair<std::string, std::string>, Times> times_;  // kernel, problem
};

}  // namespace tern
