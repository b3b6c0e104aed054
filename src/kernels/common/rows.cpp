#include "kernels/common/rows.h"

#include "kernels/common/expr.h"

namespace tern::kernels {

using kir::V;

OrRefuse<Unit> check_index(const Operand& index) {
  if (is_int(index.type.dtype) && !index.type.format) return Unit{};
  return refuse("indices of " + std::string(dtype_name(index.type.dtype)));
}

V load_index(Launcher& l, uint16_t operand, const V& i) {
  const DType type = l.problem().operands[operand].type.dtype;
  if (dtype_bytes(type) == 8) {  // as two words, so that no 64-bit arithmetic is wanted
    const kir::Buffer words = l.operand(operand).as(kir::u32);
    return kir::select(words[i * 2 + 1] == 0, words[i * 2], kir::constant(kir::u32, 4294967295.0));
  }
  const V v = l.operand(operand)[i];
  return v.type() == kir::i32 ? kir::bitcast(kir::u32, v) : v;
}

OrRefuse<StoreRoles> store_roles(const Problem& p) {
  const int state = find_role(p, Role::out), index = find_role(p, Role::index), x = find_role(p, Role::x);
  if (state < 0 || index < 0 || p.extent.size() != 2 || (p.prologue.empty() && x < 0))
    return refuse("wants a state, an index and rows");
  return StoreRoles{static_cast<uint16_t>(state), static_cast<uint16_t>(index), x};
}

V stored_value(Launcher& l, const StoreRoles& r, const V& t, const V& column, kir::Type type) {
  const Problem& p = l.problem();
  if (p.prologue.empty())
    return convert(l.operand(static_cast<uint16_t>(r.x))[t * l.argument(p.extent[1]) + column], type);
  const V axes[2] = {t, column};
  ExprInputs in;
  in.axes = axes;
  in.lane_axes = 1;
  const bool named = !p.parts.empty() && !p.parts[0].outs.empty();
  const size_t result = named ? p.parts[0].outs[0].result : p.prologue.code.size() - 1;
  return convert(emit_expr(l, p.prologue, in)[result], type);
}

}  // namespace tern::kernels
