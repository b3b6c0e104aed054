// Operands of the reference evaluation that may still lie in their stored form.
#pragma once

#include "ops/common/numbers.h"

namespace tern {

// Operand i, decoded or stored.
struct RefOperand {
  const RefTensor* dense = nullptr;
  const TensorView* stored = nullptr;
  const Extents& shape() const { return dense ? dense->shape : stored->shape; }
  DType dtype() const { return dense ? dense->dtype : stored->dtype; }
  // Elements [first, first + count) of a float operand; with a format both are multiples of the block.
  Status read(int64_t first, int64_t count, double* out) const;
};
RefOperand operand(const RefTensors& r, size_t i);

}  // namespace tern
