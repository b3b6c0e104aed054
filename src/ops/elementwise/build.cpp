#include "core/scalar.h"
#include "graph/text/text.h"
#include "ops/common/decompose.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

Value row(Builder& b, ScalarOp op, std::vector<Value> in) { return b.op(scalar_row(op).name, std::move(in)); }

Value binary(Builder& b, ScalarOp op, Value x, Value y) { return row(b, op, broadcast_together(b, {x, y})); }

Value with_number(Builder& b, ScalarOp op, Value x, double y) {
  if (b.failed()) return {};
  return row(b, op, {x, b.constant(b.type(x).dtype, y)});
}

// The extent that two aligned axes have together; nothing: they cannot.
bool join(const DimTable& dims, Dim& into, Dim d) {
  if (d == into || d.constant() == 1) return true;
  if (into.constant() == 1) {
    into = d;
    return true;
  }
  if (dims.equal(into, d) == false) return false;
  if (d.constant()) into = d;  // the constant tells more; broadcast leaves the guard
  return true;
}

}  // namespace

std::vector<Value> broadcast_together(Builder& b, std::vector<Value> values) {
  if (b.failed()) return values;
  Shape shape;
  for (Value v : values) {
    const Shape& s = b.type(v).shape;
    if (s.size() > shape.size()) shape.insert(shape.begin(), s.size() - shape.size(), Dim(1));
    for (size_t i = 0; i < s.size(); ++i) {
      Dim& into = shape[shape.size() - s.size() + i];
      if (join(b.dims(), into, s[i])) continue;
      b.fail(make_error(Code::invalid, "broadcast: " + shape_text(b.dims(), b.type(values[0]).shape) + " and " +
                                           shape_text(b.dims(), s) + " do not go together (" + b.dims().text(into) +
                                           " and " + b.dims().text(s[i]) + ")"));
      return values;
    }
  }
  for (Value& v : values) {
    const Shape& s = b.type(v).shape;
    if (!s.empty() && s != shape) v = broadcast_to(b, v, shape);
  }
  return values;
}

#define TERN_UNARY(name) \
  Value name(Builder& b, Value x) { return row(b, ScalarOp::name, {x}); }
TERN_UNARY(neg)
TERN_UNARY(abs)
TERN_UNARY(sign)
TERN_UNARY(relu)
TERN_UNARY(sqrt)
TERN_UNARY(rsqrt)
TERN_UNARY(reciprocal)
TERN_UNARY(exp)
TERN_UNARY(log)
TERN_UNARY(sin)
TERN_UNARY(cos)
TERN_UNARY(tanh)
TERN_UNARY(erf)
TERN_UNARY(sigmoid)
TERN_UNARY(silu)
TERN_UNARY(gelu_tanh)
TERN_UNARY(gelu_erf)
TERN_UNARY(softplus)
TERN_UNARY(floor)
TERN_UNARY(ceil)
TERN_UNARY(round)
TERN_UNARY(isnan)
TERN_UNARY(isinf)
TERN_UNARY(isfinite)
TERN_UNARY(logical_not)
#undef TERN_UNARY

#define TERN_BINARY(name, op) \
  Value name(Builder& b, Value x, Value y) { return binary(b, ScalarOp::op, x, y); }
TERN_BINARY(add, add)
TERN_BINARY(sub, sub)
TERN_BINARY(mul, mul)
TERN_BINARY(div, div)
TERN_BINARY(rem, rem)
TERN_BINARY(min, min)
TERN_BINARY(max, max)
TERN_BINARY(pow, pow)
TERN_BINARY(atan2, atan2)
TERN_BINARY(equal, eq)
TERN_BINARY(not_equal, ne)
TERN_BINARY(less, lt)
TERN_BINARY(less_equal, le)
TERN_BINARY(greater, gt)
TERN_BINARY(greater_equal, ge)
TERN_BINARY(bit_and, bit_and)
TERN_BINARY(bit_or, bit_or)
TERN_BINARY(bit_xor, bit_xor)
TERN_BINARY(shift_left, shift_left)
TERN_BINARY(shift_right, shift_right)
#undef TERN_BINARY

Value add(Builder& b, Value x, double y) { return with_number(b, ScalarOp::add, x, y); }
Value sub(Builder& b, Value x, double y) { return with_number(b, ScalarOp::sub, x, y); }
Value mul(Builder& b, Value x, double y) { return with_number(b, ScalarOp::mul, x, y); }
Value div(Builder& b, Value x, double y) { return with_number(b, ScalarOp::div, x, y); }
Value min(Builder& b, Value x, double y) { return with_number(b, ScalarOp::min, x, y); }
Value max(Builder& b, Value x, double y) { return with_number(b, ScalarOp::max, x, y); }

Value fma(Builder& b, Value x, Value y, Value z) { return row(b, ScalarOp::fma, broadcast_together(b, {x, y, z})); }
Value clamp(Builder& b, Value x, Value low, Value high) {
  return row(b, ScalarOp::clamp, broadcast_together(b, {x, low, high}));
}
Value select(Builder& b, Value cond, Value yes, Value no) {
  return row(b, ScalarOp::select, broadcast_together(b, {cond, yes, no}));
}

Value cast(Builder& b, Value x, DType to) {
  if (b.failed() || b.type(x).dtype == to) return x;
  return b.op("cast", {x}, {to});
}

Value swiglu(Builder& b, Value gate, Value up) { return mul(b, silu(b, gate), up); }

}  // namespace tern
