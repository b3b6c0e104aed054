// Elementwise ops over sizes.
#pragma once

#include "core/scalar.h"
#include "tern/shape.h"

namespace tern {

// The op's exact integer value over dims (operands beyond its arity are not looked at; bools are 0 and 1), or why it is
// no expression that holds for all sizes.
OrRefuse<Dim> dim_of(ScalarOp op, DimTable& dims, Dim a, Dim b = 0, Dim c = 0);

}  // namespace tern
