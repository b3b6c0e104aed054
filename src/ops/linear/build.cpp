#include <algorithm>

#include "graph/text/text.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/linear.h"
#include "tern/ops/shape.h"

namespace tern {

Value dot_general(Builder& b, Value lhs, Value rhs, DotAxes axes, Precision precision) {
  return b.op("dot_general", {lhs, rhs},
              {std::move(axes.lhs_contract), std::move(axes.rhs_contract), std::move(axes.lhs_batch),
               std::move(axes.rhs_batch), std::string(precision == Precision::high ? "high" : "normal")});
}

Value linear(Builder& b, Value x, Value w, Value bias, Precision precision) {
  if (b.failed()) return {};
  const auto rank = static_cast<int64_t>(b.type(x).shape.size());
  if (rank == 0 || b.type(w).shape.size() != 2) {
    b.fail(make_error(Code::invalid, "linear: wants x [.., K] and a weight [N, K], got " +
                                         type_text(b.dims(), b.type(x)) + " and " + type_text(b.dims(), b.type(w))));
    return {};
  }
  const Value y = dot_general(b, x, w, {{rank - 1}, {1}, {}, {}}, precision);
  return bias.valid() ? add(b, y, bias) : y;
}

namespace {

Shape leading(const Shape& s) { return Shape(s.begin(), s.end() - 2); }

// Leading axes of both sides to one shape; the last two stay.
void broadcast_leading(Builder& b, Value& x, Value& y) {
  const Shape xs = b.type(x).shape, ys = b.type(y).shape;
  Shape lead(std::max(xs.size(), ys.size()) - 2, 1);
  for (const Shape& s : {leading(xs), leading(ys)}) {
    for (size_t i = 0; i < s.size(); ++i) {
      Dim& into = lead[lead.size() - s.size() + i];
      const bool sure = s[i].constant() && s[i].constant() != 1;
      if (into.constant() == 1 || (sure && !into.constant())) into = s[i];
    }
  }
  for (Value* v : {&x, &y}) {
    const Shape& s = b.type(*v).shape;
    Shape to = lead;
    to.insert(to.end(), s.end() - 2, s.end());
    *v = broadcast_to(b, *v, std::move(to));
  }
}

}  // namespace

Value matmul(Builder& b, Value x, Value y) {
  if (b.failed()) return {};
  const bool row = b.type(x).shape.size() == 1, column = b.type(y).shape.size() == 1;
  if (row) x = expand_dims(b, x, 0);
  if (column) y = expand_dims(b, y, 1);
  if (b.failed()) return {};
  if (b.type(x).shape.size() < 2 || b.type(y).shape.size() < 2) {
    b.fail(make_error(Code::invalid, "matmul: wants operands of rank 1 or more, got " + type_text(b.dims(), b.type(x)) +
                                         " and " + type_text(b.dims(), b.type(y))));
    return {};
  }
  Value out;
  if (b.type(y).shape.size() == 2) {  // one matrix for all of x: no batch
    const auto last = static_cast<int64_t>(b.type(x).shape.size()) - 1;
    out = dot_general(b, x, y, {{last}, {0}, {}, {}});
  } else {
    broadcast_leading(b, x, y);
    if (b.failed()) return {};
    const auto rank = static_cast<int64_t>(b.type(x).shape.size());
    DotAxes axes{{rank - 1}, {rank - 2}, {}, {}};
    for (int64_t i = 0; i + 2 < rank; ++i) axes.lhs_batch.push_back(i), axes.rhs_batch.push_back(i);
    out = dot_general(b, x, y, std::move(axes));
  }
  if (column) out = squeeze(b, out, -1);
  if (row) out = squeeze(b, out, column ? -1 : -2);
  return out;
}

}  // namespace tern
