// Contents of buffers, and whether two of them agree.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "kir/ir.h"

namespace tern::test {

using Bytes = std::vector<std::vector<std::byte>>;

// Whether two results agree; NaNs are alike whatever their bits.
inline bool same(const kir::Binding& b, const std::vector<std::byte>& x, const std::vector<std::byte>& y,
                 std::string* where) {
  const uint32_t size = kir::type_bytes(b.type);
  for (size_t i = 0; i + size <= x.size(); i += size) {
    if (!std::memcmp(&x[i], &y[i], size)) continue;
    if (b.type == kir::f32) {
      float p, q;
      std::memcpy(&p, &x[i], 4), std::memcpy(&q, &y[i], 4);
      if (p != p && q != q) continue;
      *where = b.name + "[" + std::to_string(i / size) + "] = " + std::to_string(p) + " expected, " + std::to_string(q);
    } else if (b.type == kir::f64) {
      double p, q;
      std::memcpy(&p, &x[i], 8), std::memcpy(&q, &y[i], 8);
      if (p != p && q != q) continue;
      *where = b.name + "[" + std::to_string(i / size) + "] = " + std::to_string(p) + " expected, " + std::to_string(q);
    } else {
      int64_t p = 0, q = 0;
      std::memcpy(&p, &x[i], size), std::memcpy(&q, &y[i], size);
      *where = b.name + "[" + std::to_string(i / size) + "] = " + std::to_string(p) + " expected, " + std::to_string(q);
    }
    return false;
  }
  return true;
}

}  // namespace tern::test
