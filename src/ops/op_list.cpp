#include "ops/op_list.h"

#include <vector>

namespace tern {

std::span<const OpDef* const> op_list() {
  static const std::vector<const OpDef*> kOps = [] {
    std::vector<const OpDef*> ops;
    for (const OpDef& op : kScalarOps) ops.push_back(&op);
#define TERN_OP(name) ops.push_back(&k##name##Op);
#include "ops/op_list.inc"
#undef TERN_OP
    return ops;
  }();
  return kOps;
}

}  // namespace tern
