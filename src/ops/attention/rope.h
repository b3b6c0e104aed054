// The frequencies of rotary positions.
#pragma once

#include <vector>

#include "graph/op.h"
#include "tern/ops/attention.h"

namespace tern {

RopeOptions rope_options(const Node& node, int64_t head);  // rotary filled in
// Radians a position, of each of rotary / 2 angles, scaled; frequency factors are not in them.
std::vector<double> rope_frequencies(const RopeOptions& options);

}  // namespace tern
