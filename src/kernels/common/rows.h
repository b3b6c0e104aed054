// Rows chosen by an index operand: gather and store.
#pragma once

#include "kernels/common/launch.h"

namespace tern::kernels {

OrRefuse<Unit> check_index(const Operand& index);
// index[i] as u32: what lies outside 0 .. 2^32 - 1 comes out as 2^32 - 1, which is outside of every axis.
kir::V load_index(Launcher& l, uint16_t operand, const kir::V& i);

}  // namespace tern::kernels
