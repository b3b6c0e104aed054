#include "ops/common/stored.h"

#include <algorithm>

namespace tern {

RefOperand operand(const RefTensors& r, size_t i) { return {r.in[i], i < r.stored.size() ? r.stored[i] : nullptr}; }

Status RefOperand::read(int64_t first, int64_t count, double* out) const {
  if (dense) {
    std::copy_n(dense->f.begin() + first, count, out);
    return ok();
  }
  TERN_TRY(const uint64_t skip, dense_bytes(stored->dtype, stored->format, std::vector{first}));
  TERN_TRY(const uint64_t bytes, dense_bytes(stored->dtype, stored->format, std::vector{count}));
  if (skip > stored->data.size() || bytes > stored->data.size() - skip)
    return make_error(Code::invalid, "a stored tensor is shorter than its type says");
  TERN_TRY(const RefTensor part,
           ref_from(TensorView{stored->dtype, {count}, stored->data.subspan(skip, bytes), stored->format}));
  std::copy(part.f.begin(), part.f.end(), out);
  return ok();
}

}  // namespace tern
