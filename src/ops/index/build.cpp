#include "graph/text/text.h"
#include "ops/common/decompose.h"
#include "ops/common/rules.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {

Value gather(Builder& b, Value data, Value index, int axis) {
  if (b.failed()) return {};
  return b.op("gather", {data, index}, {from_front(b, "gather", axis, b.type(data).shape.size())});
}
Value embedding(Builder& b, Value table, Value ids) { return gather(b, table, ids, 0); }
Value store_rows(Builder& b, Value state, Value index, Value src) { return b.op("store_rows", {state, index, src}); }

// Running counts say where each hit goes: hit k is written to row k of a table as long as x, which is then cut to the
// count.
Value nonzero(Builder& b, Value x, DType dtype) {
  if (b.failed()) return {};
  const TensorType type = b.type(x);
  DimTable& dims = b.dims();
  const Dim size = product(dims, type.shape);
  const int64_t most = dims.range(size).second;
  if (type.shape.empty() || most > INT32_MAX) {
    b.fail(make_error(Code::invalid, "nonzero: the operand is " + type_text(dims, type) +
                                         ", wants at least one axis and less than 2^31 elements"));
    return {};
  }
  const Value flat = reshape(b, x, Shape{size});
  const Value hit = type.dtype == DType::boolean ? flat : not_equal(b, flat, b.constant(type.dtype, 0));
  const Value upto = cumsum(b, cast(b, hit, DType::i32), 0);
  const Value count = gather(b, upto, dim_value(b, dims.sub(size, 1), DType::i32));  // of nothing: 0
  const Value to = select(b, hit, sub(b, upto, 1), b.constant(DType::i32, -1));
  const Value none = broadcast_to(b, b.constant(DType::i32, 0), Shape{size});
  const Value table = store_rows(b, none, to, iota(b, Shape{size}, 0));
  const Dim n = late_size(b, count, "nonzero", 0, most);
  const Value at = slice(b, table, 0, 0, n);
  std::vector<Value> columns;
  Dim inner = 1;
  for (size_t a = type.shape.size(); a-- > 0;) {
    Value index = inner == Dim(1) ? at : div(b, at, dim_value(b, inner, DType::i32));
    if (a > 0) index = rem(b, index, dim_value(b, type.shape[a], DType::i32));
    columns.insert(columns.begin(), reshape(b, index, Shape{n, 1}));
    inner = dims.mul(inner, type.shape[a]);
  }
  return cast(b, concat(b, std::move(columns), 1), dtype);
}

}  // namespace tern
