// Rows chosen by an index operand: gather and stores.
#pragma once

#include "kernels/common/launch.h"

namespace tern::kernels {

OrRefuse<Unit> check_index(const Operand& index);
// index[i] as u32: what lies outside 0 .. 2^32 - 1 comes out as 2^32 - 1, which is outside of every axis.
kir::V load_index(Launcher& l, uint16_t operand, const kir::V& i);

// Operands of Family::store.
struct StoreRoles {
  uint16_t state, index;
  int x;  // -1: the prologue says all
};
OrRefuse<StoreRoles> store_roles(const Problem& p);
// What goes to a column of token t's row: x, or what the prologue makes of it.
kir::V stored_value(Launcher& l, const StoreRoles& r, const kir::V& t, const kir::V& column, kir::Type type);

}  // namespace tern::kernels
