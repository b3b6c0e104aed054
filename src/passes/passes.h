// The passes of this room; pipeline.cpp orders them.
#pragma once

#include "passes/pass.h"

namespace tern {

// Shape arithmetic that is done becomes what it says: `dim` and `dims` of expressions over symbols.
Status settle(Graph& graph, const Target& target);
// One spelling for what can be said in several ways: constants to the right, chains of views composed, work on
// broadcast scalars done before the broadcast.
Status canonicalise(Graph& graph, const Target& target);
// Exact identities only: x * 0 stays for floats (NaN, infinities, -0), x + 0 stays for floats (-0 + 0 is 0).
Status simplify(Graph& graph, const Target& target);
// Nodes over constants become constants, by the op's reference; bounded in size, random ops stay.
Status fold(Graph& graph, const Target& target);
// Equal nodes become one.
Status cse(Graph& graph, const Target& target);
// Drops what no output or update needs, and guards that are proved by now.
Status dce(Graph& graph, const Target& target);
// Composite nodes that no candidate takes become what they are made of.
Status decompose(Graph& graph, const Target& target);

}  // namespace tern
