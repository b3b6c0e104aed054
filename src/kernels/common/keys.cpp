#include "kernels/common/keys.h"

namespace tern::kernels {

using kir::V;

V order_key(const V& value, bool largest) {
  const kir::Type type = value.type();
  if (type == kir::b1) return order_key(kir::cast(kir::u32, value), largest);
  const bool wide = kir::is_wide64(type);
  const kir::Type bits = wide ? kir::u64 : kir::u32;
  kir::B& b = kir::B::current();
  const V sign = b.constant(bits, wide ? uint64_t{1} << 63 : uint64_t{1} << 31),
          ones = b.constant(bits, wide ? ~uint64_t{0} : 0xffffffffu);
  V key;
  if (kir::is_float(type)) {
    const V zero = kir::constant(type, 0);
    const V raw = kir::bitcast(bits, kir::select(value == zero, zero, value));
    key = kir::select((raw & sign) != b.constant(bits, 0), raw ^ ones, raw | sign);
    if (!largest) key = key ^ ones;
    return kir::select(kir::is_nan(value), ones, key);
  }
  key = kir::is_signed(type) ? kir::bitcast(bits, value) ^ sign : value;
  return largest ? key : key ^ ones;
}

V key_value(const V& key) {
  kir::B& b = kir::B::current();
  const V sign = b.constant(kir::u32, uint64_t{1} << 31), ones = b.constant(kir::u32, 0xffffffffu);
  return kir::bitcast(kir::f32, kir::select((key & sign) != b.constant(kir::u32, 0), key ^ sign, key ^ ones));
}

}  // namespace tern::kernels
