// int8 activation blocks (kActInt8): 32 values share a scale. One home for how they are made, so that every producer
// gives equal bytes.
#pragma once

#include "kernels/common/launch.h"

namespace tern::kernels {

constexpr uint32_t kBlock = 32;

// Where the planes of one row of `columns` values lie, in words: codes, scales, sums.
inline kir::V act_row_words(const kir::V& columns) { return columns / 16 * 5; }

// Stores the block that 32 lanes hold, one value a lane, for a workgroup of exactly 32 lanes. row_base: first word of
// the row (u32), block: index of the block in the row. words: the operand as u32. Uniform control only.
void store_block(Launcher& l, const kir::Buffer& words, const kir::V& row_base, const kir::V& columns,
                 const kir::V& block, const kir::V& value, const kir::Shared& staging);
// Workgroup memory that store_block needs; make once a kernel.
kir::Shared block_staging();

}  // namespace tern::kernels
