#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/attention/rope.h"

namespace tern {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// The dimension (of rotary) whose angle makes `turns` turns within the original context: Peng et al. 2023, section 3.2.
double turning_dimension(const RopeOptions& o, double turns) {
  return static_cast<double>(o.rotary) * std::log(o.original_context / (turns * kTurn)) / (2 * std::log(o.base));
}

void yarn(const RopeOptions& o, std::vector<double>& f) {
  double low = turning_dimension(o, o.beta_fast), high = turning_dimension(o, o.beta_slow);
  if (o.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(o.rotary - 1));
  const double width = std::max(high - low, 0.001);
  for (size_t i = 0; i < f.size(); ++i) {
    const double slow = std::clamp((static_cast<double>(i) - low) / width, 0.0, 1.0);
    f[i] = f[i] / o.factor * slow + f[i] * (1 - slow);
  }
}

// As Meta's llama 3.1 code and its config keys define it.
void llama3(const RopeOptions& o, std::vector<double>& f) {
  for (double& v : f) {
    const double wave = kTurn / v;
    if (wave < o.original_context / o.high_freq_factor) continue;
    if (wave > o.original_context / o.low_freq_factor) {
      v /= o.factor;
      continue;
    }
    const double fast = (o.original_context / wave - o.low_freq_factor) / (o.high_freq_factor - o.low_freq_factor);
    v = (1 - fast) * v / o.factor + fast * v;
  }
}

}  // namespace

std::vector<double> rope_frequencies(const RopeOptions& o) {
  std::vector<double> f(static_cast<size_t>(o.rotary / 2));
  for (size_t i = 0; i < f.size(); ++i)
    f[i] = std::pow(o.base, -2.0 * static_cast<double>(i) / static_cast<double>(o.rotary));
  switch (o.scale) {
    case RopeOptions::Scale::none: break;
    case RopeOptions::Scale::linear:
      for (double& v : f) v /= o.factor;
      break;
    case RopeOptions::Scale::yarn: yarn(o, f); break;
    case RopeOptions::Scale::llama3: llama3(o, f); break;
  }
  return f;
}

}  // namespace tern
