// How one array is read through the axes of another: views, loads of regions, stores.
#pragma once

#include <vector>

#include "tern/shape.h"

namespace tern {

// Elements of the stored value, over the reader's axes: index = offset + sum(stride[i] * axis[i]). Strides may be 0 or
// negative.
struct IndexMap {
  Dim offset;
  std::vector<Dim> stride;
  bool operator==(const IndexMap&) const = default;
};

}  // namespace tern
