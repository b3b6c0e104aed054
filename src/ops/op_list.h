// The op descriptors by name, for those who look for a certain op: kReshapeOp, scalar_op(ScalarOp::add), ...
#pragma once

#include "core/scalar.h"
#include "graph/op.h"

namespace tern {

extern const OpDef kScalarOps[static_cast<size_t>(ScalarOp::count_)];  // in the order of core/scalar_ops.inc
inline const OpDef& scalar_op(ScalarOp op) { return kScalarOps[static_cast<size_t>(op)]; }

#define TERN_OP(name) extern const OpDef k##name##Op;
#include "ops/op_list.inc"
#undef TERN_OP

}  // namespace tern
