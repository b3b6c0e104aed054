#include "ops/common/decompose.h"
#include "tern/ops/index.h"

namespace tern {

Value gather(Builder& b, Value data, Value index, int axis) {
  if (b.failed()) return {};
  return b.op("gather", {data, index}, {from_front(b, "gather", axis, b.type(data).shape.size())});
}
Value embedding(Builder& b, Value table, Value ids) { return gather(b, table, ids, 0); }
Value store_rows(Builder& b, Value state, Value index, Value src) { return b.op("store_rows", {state, index, src}); }

}  // namespace tern
