#include "kernels/common/blocks.h"

namespace tern::kernels {

using kir::V;

kir::Shared block_staging() {
  return kir::B::current().caps().byte_storage ? kir::Shared() : kir::shared("codes", kir::u32, kBlock);
}

void store_block(Launcher& l, const kir::Buffer& words, const V& row_base, const V& columns, const V& block,
                 const V& value, const kir::Shared& staging) {
  const V most = kir::wg_max(kir::abs(value));
  const V scale = most * (1.f / 127.f);
  // A block of zeros (or of subnormals, whose reciprocal overflows) is stored as zeros.
  const V inverse = kir::select(most > 1e-30f, 127.f / kir::max(most, 1e-30f), V(0.f));
  const V code = kir::cast(kir::i32, kir::round(value * inverse));
  const V sum = kir::wg_add(code);
  if (l.caps().byte_storage) {
    words.as(kir::i8).store(row_base * 4 + block * static_cast<int>(kBlock) + kir::lane(), code);
  } else {
    staging.store(kir::lane(), kir::bitcast(kir::u32, code) & 0xff);
    kir::barrier();
    kir::If(kir::lane() < 8, [&] {
      V word = staging[kir::lane() * 4];
      for (int i = 1; i < 4; ++i) word = word | staging[kir::lane() * 4 + i] << (8 * i);
      words.store(row_base + block * 8 + kir::lane(), word);
    });
    kir::barrier();
  }
  kir::If(kir::lane() == 0, [&] {
    const V at = row_base + columns / 4 + block;
    words.as(kir::f32).store(at, kir::select(most > 1e-30f, scale, V(0.f)));
    words.as(kir::i32).store(at + columns / static_cast<int>(kBlock), sum);
  });
}

}  // namespace tern::kernels
