// Which device runs which node. The first of lower's four stages; a copy between devices is a visible step of its own.
#pragma once

#include <vector>

#include "core/caps.h"
#include "graph/op.h"
#include "program/program.h"

namespace tern::lowering {

// The device of each node, by id. One device: all nodes are its. fuse keeps groups on one device and gives memory to
// what crosses.
std::vector<DeviceId> partition(const Graph& graph, const Caps& caps);

}  // namespace tern::lowering
