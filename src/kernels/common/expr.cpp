#include "kernels/common/expr.h"

#include "kir/scalar.h"

namespace tern::kernels {

using kir::V;

OrRefuse<Unit> check_expr(const ScalarExpr& expr, const Caps& caps) {
  for (size_t i = 0; i < expr.code.size(); ++i) {
    const ScalarExpr::Ins& ins = expr.code[i];
    const auto type = kir::value_type(ins.type);
    if (!type)
      return refuse("instruction " + std::to_string(i) + ": kernels do not compute " +
                    std::string(dtype_name(ins.type)));
    if ((*type == kir::i64 || *type == kir::u64) && !caps.i64) {
      return refuse("instruction " + std::to_string(i) + " is " + std::string(dtype_name(ins.type)) +
                    ", which the device lacks");
    }
    if (*type == kir::f64 && !caps.f64)
      return refuse("instruction " + std::to_string(i) + " is f64, which the device lacks");
  }
  return Unit{};
}

V convert(const V& v, kir::Type to) {
  if (v.type() == to) return v;
  if (to == kir::b1) return v != kir::constant(v.type(), 0);
  return kir::cast(to, v);
}

V map_index(Launcher& l, const IndexMap& map, std::span<const V> axes, size_t lane_axes) {
  V at = l.size(map.offset);
  for (size_t a = 0; a < map.stride.size() && a < axes.size(); ++a) {
    const auto c = map.stride[a].constant();
    if (c && *c == 0) continue;
    if (c && *c < 0)
      at = at - axes[a] * l.size(Dim(-*c));
    else
      at = at + axes[a] * (a < lane_axes ? l.argument(map.stride[a]) : l.size(map.stride[a]));
  }
  return at;
}

IndexMap map_or_dense(DimTable& dims, const IndexMap& map, std::span<const Dim> extents) {
  if (!map.stride.empty()) return map;
  IndexMap out;
  out.offset = map.offset;
  out.stride.resize(extents.size());
  Dim step = 1;
  for (size_t a = extents.size(); a-- > 0;) {
    out.stride[a] = step;
    step = dims.mul(step, extents[a]);
  }
  return out;
}

double expr_flop(const ScalarExpr& expr) {
  double n = 0;
  for (const auto& ins : expr.code) n += ins.kind == ScalarExpr::Kind::op;
  return n;
}

namespace {

V number(const ScalarExpr::Number& n, DType type) {
  const auto t = kir::value_type(type);
  if (!t) return kir::constant(kir::f32, 0);
  if (*t == kir::b1) return kir::V(n.i != 0);
  if (kir::is_float(*t)) return kir::constant(*t, n.f);
  if (*t == kir::i64 || *t == kir::u64) return kir::B::current().constant(*t, static_cast<uint64_t>(n.i));
  return kir::B::current().constant(*t, static_cast<uint32_t>(n.i));
}

// A size that is not negative, as i64 from two words of a launch.
V two_words(Launcher& l, Dim d) {
  const Dim word = int64_t{1} << 32;
  const V above = kir::cast(kir::i64, l.size(l.dims().floordiv(d, word)));
  return (above << 32) | kir::cast(kir::i64, l.size(l.dims().mod(d, word)));
}

// A size is one word of a launch where it fits, else two.
V dim_number(Launcher& l, Dim d, kir::Type to) {
  DimTable& dims = l.dims();
  const auto [low, high] = dims.range(d, l.problem().bounds);
  if (low >= INT32_MIN && high <= INT32_MAX) return convert(kir::bitcast(kir::i32, l.size(d)), to);
  if (low >= 0 && high <= int64_t{UINT32_MAX}) return convert(l.size(d), to);
  if (!l.caps().i64) {
    l.b().fail("the size " + l.dims().text(d) + " may need 64 bits, which the device lacks");
    return kir::constant(to, 0);
  }
  // Of what may be negative both parts, so that no coefficient wraps around a word.
  const Dim minus = dims.mul(d, -1);
  if (low >= 0) return convert(two_words(l, d), to);
  if (high <= 0) return convert(kir::constant(kir::i64, 0) - two_words(l, minus), to);
  return convert(two_words(l, dims.maximum(d, 0)) - two_words(l, dims.maximum(minus, 0)), to);
}

}  // namespace

std::vector<V> emit_expr(Launcher& l, const ScalarExpr& expr, const ExprInputs& in) {
  std::vector<V> out;
  using Kind = ScalarExpr::Kind;
  for (const ScalarExpr::Ins& ins : expr.code) {
    const auto type = kir::value_type(ins.type);
    const kir::Type to = type ? *type : kir::f32;
    switch (ins.kind) {
      case Kind::load: {
        const ScalarExpr::Load& load = expr.loads[ins.a];
        out.push_back(in.load ? convert(in.load(load), to)
                              : convert(l.operand(load.operand)[map_index(l, load.map, in.axes, in.lane_axes)], to));
        break;
      }
      case Kind::accumulator: out.push_back(convert(in.accumulator(ins.a), to)); break;
      case Kind::constant: out.push_back(number(expr.consts[ins.a], ins.type)); break;
      case Kind::index: out.push_back(convert(in.index ? in.index(ins.a) : in.axes[ins.a], to)); break;
      case Kind::dim: out.push_back(dim_number(l, expr.dims[ins.a], to)); break;
      case Kind::op: {
        const int arity = scalar_row(ins.op).arity;
        const uint16_t from[3] = {ins.a, ins.b, ins.c};
        std::vector<V> args;
        for (int i = 0; i < arity; ++i) args.push_back(out[from[i]]);
        const DType operand =
            ins.op == ScalarOp::cast ? ins.type : expr.code[ins.op == ScalarOp::select ? ins.b : ins.a].type;
        out.push_back(convert(kir::scalar(l.b(), ins.op, operand, args), to));
        break;
      }
    }
  }
  return out;
}

}  // namespace tern::kernels
