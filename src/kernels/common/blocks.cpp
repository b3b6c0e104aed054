#include "kernels/common/blocks.h"

namespace tern::kernels {

using kir::V;

namespace {

// One code a lane, as eight words from `at` (in words).
void store_codes(Launcher& l, const kir::Buffer& words, const V& at, const V& code, const kir::Shared& staging) {
  if (l.caps().byte_storage) {
    words.as(kir::i8).store(at * 4 + kir::lane(), code);
    return;
  }
  staging.store(kir::lane(), kir::bitcast(kir::u32, code) & 0xff);
  kir::barrier();
  kir::If(kir::lane() < 8, [&] {
    V word = staging[kir::lane() * 4];
    for (int i = 1; i < 4; ++i) word = word | staging[kir::lane() * 4 + i] << (8 * i);
    words.store(at + kir::lane(), word);
  });
  kir::barrier();
}

}  // namespace

Int8Scale int8_scale(const V& most) {
  const V there = most > 1e-30f;
  return {kir::select(there, 127.f / kir::max(most, 1e-30f), V(0.f)), kir::select(there, most * (1.f / 127.f), V(0.f))};
}

kir::Shared block_staging() {
  return kir::B::current().caps().byte_storage ? kir::Shared() : kir::shared("codes", kir::u32, kBlock);
}

void store_block(Launcher& l, uint16_t operand, const V& row, const V& columns, const V& block, const V& value,
                 const kir::Shared& staging) {
  const kir::Buffer words = l.operand(operand);
  const Layout& layout = l.problem().operands[operand].layout;
  const V base = act_row(layout, row, columns);
  const V most = kir::wg_max(kir::abs(value));
  const Int8Scale by = int8_scale(most);
  const V scaled = value * by.inverse;
  const V whole = kir::round(scaled), code = kir::cast(kir::i32, whole);
  store_codes(l, words, base + block * 8, code, staging);
  V scale = by.scale, sum = code;
  if (fine_blocks(layout)) {
    const V second = kir::cast(kir::i32, kir::min(kir::round((scaled - whole) * 256.f), 127.f));
    store_codes(l, words, base + act_second_at(columns) + block * 8, second, staging);
    scale = scale * (1.f / 256.f);
    sum = (code << 8) + second;
  }
  const V half = kir::wg_add(kir::select(kir::lane() < 16, sum, kir::constant(kir::i32, 0)));
  sum = kir::wg_add(sum);
  kir::If(kir::lane() == 0, [&] {
    words.as(kir::f32).store(base + act_scale_at(columns, block), scale);
    words.as(kir::i32).store(base + act_sum_at(columns, block), sum);
    words.as(kir::i32).store(base + act_half_sum_at(columns, block), half);
  });
}

}  // namespace tern::kernels
