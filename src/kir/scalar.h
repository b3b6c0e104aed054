// Elementwise ops of the graph as kir: the kir column of core/scalar_ops.inc.
#pragma once

#include <span>

#include "core/scalar.h"
#include "kir/builder.h"

namespace tern::kir {

// The value of `op` over `in`, which hold value types (value_type(dtype)): f16 and bf16 are computed in f32 and round
// when stored, 8- and 16-bit integers in i32 or u32 and wrap here. `dtype` is the type of the operands; for `cast` the
// source is in[0]'s type and `dtype` the target; for `select` the type of in[1]. An op or type that kir lacks makes the
// builder fail by name.
V scalar(B& b, ScalarOp op, DType dtype, std::span<const V> in);

}  // namespace tern::kir
