// int8 activation blocks (kActInt8): 32 values share a scale. One home for how they are made, so that every producer
// gives equal bytes.
#pragma once

#include "kernels/common/launch.h"

namespace tern::kernels {

constexpr uint32_t kBlock = 32;
constexpr int kCodes = kBlock;

// How a block whose largest absolute value is `most` becomes int8 codes: code = round(value * inverse), value = code *
// scale. A block of zeros (or of subnormals, whose reciprocal overflows) becomes zeros.
struct Int8Scale {
  kir::V inverse, scale;
};
Int8Scale int8_scale(const kir::V& most);

// Calls f(i, which half) for `count` halves that lie in pairs in words, the `word`-th of them.
template <class F>
void each_half(int count, const kir::V& word, F&& f) {
  f(word * 2, 0);
  const auto second = [&] { f(word * 2 + 1, 1); };
  if (count % 2 == 0)
    second();
  else
    kir::If(word * 2 + 1 < count, second);
}

// Where the planes of one row of `columns` values lie, in words from act_row: codes, scales, sums, sums of first
// halves, second codes.
inline bool fine_blocks(const Layout& layout) { return layout.tile[0] != 0; }
inline kir::V act_row(const Layout& layout, const kir::V& row, const kir::V& columns) {
  return row * (columns / 32 * (fine_blocks(layout) ? 19 : 11));
}
inline kir::V act_scale_at(const kir::V& columns, const kir::V& block) { return columns / 4 + block; }
inline kir::V act_sum_at(const kir::V& columns, const kir::V& block) { return columns / 32 * 9 + block; }
inline kir::V act_half_sum_at(const kir::V& columns, const kir::V& block) { return columns / 32 * 10 + block; }
inline kir::V act_second_at(const kir::V& columns) { return columns / 32 * 11; }

// Stores the block that 32 lanes hold, one value a lane, for a workgroup of exactly 32 lanes, as block `block` of row
// `row` of an operand whose rows have `columns` values. Uniform control only.
void store_block(Launcher& l, uint16_t operand, const kir::V& row, const kir::V& columns, const kir::V& block,
                 const kir::V& value, const kir::Shared& staging);
// Workgroup memory that store_block needs; make once a kernel.
kir::Shared block_staging();

}  // namespace tern::kernels
