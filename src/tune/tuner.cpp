#include "tern/tune/tuner.h"

#include <algorithm>

namespace tern {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

bool Tuner::add(std::span<const StepProfile> profile) {
  bool fresh = false;
  for (const StepProfile& step : profile) {
    if (step.candidate.empty()) continue;
    Times& times = times_[{step.candidate, step.problem}];
    if (times.of.empty()) times.usual = step.variant;
    std::vector<double>& seconds = times.of[step.variant];
    fresh = fresh || seconds.empty();
    seconds.push_back(step.seconds);
  }
  return fresh;
}

Tuning Tuner::best(double margin) const {
  Tuning tuning;
  for (const auto& [key, times] : times_) {
    const double usual = median(times.of.at(times.usual));
    TunedKernel best{key.first, key.second, times.usual, usual, usual};
    for (const auto& [variant, seconds] : times.of) {
      const double mine = median(seconds);
      if (mine < best.seconds) best.variant = variant, best.seconds = mine;
    }
    if (best.seconds <= (1 - margin) * usual) tuning.add(std::move(best));
  }
  return tuning;
}

Tuning Tuner::merged(const Tuning& kept, double margin) const {
  Tuning tuning;
  for (const TunedKernel& k : kept.kernels()) {
    if (!times_.contains({k.kernel, k.problem})) tuning.add(k);
  }
  const Tuning found = best(margin);
  for (const TunedKernel& k : found.kernels()) tuning.add(k);
  return tuning;
}

size_t Tuner::variants() const {
  size_t count = 0;
  for (const auto& [key, times] : times_) count += times.of.size() > 1 ? times.of.size() : 0;
  return count;
}

}  // namespace tern
