// The value of one pure op on constant bits: what folding, the interpreter and emitters' lane patterns share.
#pragma once

#include <cstdint>

#include "kir/ir.h"

namespace tern::kir {

// Bits of a value are zero-extended to 64 (Node::imm of a constant). `operand` is the type of a (of b for select).
// False: no value (division by zero, an op that is not pure). Float results are exact IEEE single or double operations,
// fma with one rounding.
bool eval(Op op, Type type, Type operand, uint64_t a, uint64_t b, uint64_t c, uint64_t* out);

}  // namespace tern::kir
