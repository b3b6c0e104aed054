// What the layouts share: rows and columns of a value.
#pragma once

#include <string>

#include "program/layout.h"

namespace tern::layouts {

// The last axis, constant.
inline OrRefuse<int64_t> columns(const TensorType& type) {
  if (type.shape.empty()) return int64_t{1};
  if (const auto k = type.shape.back().constant()) return *k;
  return refuse("the last axis is symbolic");
}
// Product of all axes but the last.
inline Dim rows(DimTable& dims, const TensorType& type) {
  Dim n = 1;
  for (size_t i = 0; i + 1 < type.shape.size(); ++i) n = dims.mul(n, type.shape[i]);
  return n;
}
inline int64_t constant_rows(const TensorType& type) {
  int64_t n = 1;
  for (size_t i = 0; i + 1 < type.shape.size(); ++i) n *= type.shape[i].constant().value_or(0);
  return n;
}
inline Dim word_aligned(DimTable& dims, Dim bytes) {
  if (dims.divisible(bytes, 4).value_or(false)) return bytes;
  return dims.mul(dims.ceildiv(bytes, 4), 4);
}

}  // namespace tern::layouts
