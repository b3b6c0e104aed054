// What adding and verifying nodes share.
#pragma once

#include <vector>

#include "graph/op.h"

namespace tern {

// Arity, operands, regions, then the op's own type rule. attrs are complete. Guards that the node needs are appended.
Result<std::vector<TensorType>> infer_node(const Graph& graph, const Node& node, std::vector<Guard>& guards);
void add_guard(std::vector<Guard>& guards, Guard guard);
bool has_guard(const std::vector<Guard>& guards, const Guard& guard);  // either way round
std::string_view port_kind_name(PortKind kind);
const OpDef& port_op(PortKind kind);

}  // namespace tern
