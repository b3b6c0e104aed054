// Numbers as unsigned keys that order like them.
#pragma once

#include "kir/builder.h"

namespace tern::kernels {

// A u32 (u64 for 64-bit types): larger keys are better ones, `largest` saying which end that is. NaN beats everything;
// zeros of both signs are equal.
kir::V order_key(const kir::V& value, bool largest);
// The f32 whose key (largest) this is; NaN's key gives a NaN.
kir::V key_value(const kir::V& key);

}  // namespace tern::kernels
