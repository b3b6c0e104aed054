// Between stored bytes and the numbers of the reference evaluation.
#pragma once

#include "graph/op.h"

namespace tern {

// The nearest value of the type (ties to even, overflow as the type does it), as a double. Floats only; one rounding,
// not two.
double round_to(DType dtype, double value);
// Two's complement wrap to the type's bits, sign- or zero-extended; bool: 0 or 1. Integers and bool only.
int64_t wrap_to(DType dtype, int64_t value);

// dtype and shape set, data sized and zero.
RefTensor ref_zeros(DType dtype, std::vector<int64_t> shape);
// Decodes blocks where the view has a format; an error where data and shape do not agree.
Result<RefTensor> ref_from(const TensorView& view);
Result<RefTensor> ref_from(const Const& constant);
// Rounds or wraps to the tensor's own type.
Const const_from(const RefTensor& tensor);
Status ref_store(const RefTensor& tensor, const MutableView& to);

}  // namespace tern
