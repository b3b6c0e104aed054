// A small op list of its own: graph knows no op names.
#pragma once

#include <cstring>

#include "graph/op.h"

namespace tern {

// The constants of tests.
template <class T>
Const make_const(DType dtype, std::vector<int64_t> shape, std::vector<T> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {dtype, std::move(shape), std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
}

}  // namespace tern
