#include "kernels/common/rows.h"

namespace tern::kernels {

OrRefuse<Unit> check_index(const Operand& index) {
  if (is_int(index.type.dtype) && !index.type.format) return Unit{};
  return refuse("indices of " + std::string(dtype_name(index.type.dtype)));
}

kir::V load_index(Launcher& l, uint16_t operand, const kir::V& i) {
  const DType type = l.problem().operands[operand].type.dtype;
  if (dtype_bytes(type) == 8) {  // as two words, so that no 64-bit arithmetic is wanted
    const kir::Buffer words = l.operand(operand).as(kir::u32);
    return kir::select(words[i * 2 + 1] == 0, words[i * 2], kir::constant(kir::u32, 4294967295.0));
  }
  const kir::V v = l.operand(operand)[i];
  return v.type() == kir::i32 ? kir::bitcast(kir::u32, v) : v;
}

}  // namespace tern::kernels
