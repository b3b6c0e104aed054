#pragma once

#include <string>

#include "lower/groups.h"

namespace tern::lowering {

// One paragraph a group: what it reads and makes by name, its expressions line by line.
std::string grouping_text(const Graph& graph, const Grouping& grouping);

}  // namespace tern::lowering
