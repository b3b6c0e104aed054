// reduce: extent = kept axes, then reduced axes; sum, product, extremes and logic of the prologue, finished by the
// epilogue. Where the values walk along the last reduced axis, a workgroup's lanes share one result; else each lane
// owns one and walks alone.
#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/common/expr.h"
#include "kir/scalar.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;
using kir::Var;

struct Shape2 {
  size_t kept = 0;  // axes
  Dim outputs = 1, steps = 1;
  bool shared = true;  // the lanes of a workgroup work on one output
};

Shape2 shape_of(const Problem& p, DimTable& dims) {
  Shape2 s;
  s.kept = p.extent.size() - std::get<ReduceDesc>(p.desc).reduced_axes;
  for (size_t a = 0; a < p.extent.size(); ++a)
    (a < s.kept ? s.outputs : s.steps) = dims.mul(a < s.kept ? s.outputs : s.steps, p.extent[a]);
  // Alone where some load walks along the last kept axis and none along the last reduced one, or there is nothing to
  // share.
  bool along = false, across = false;
  for (const auto& l : p.prologue.loads) {
    along = along || (l.map.stride.size() == p.extent.size() && l.map.stride.back() == Dim(1));
    across = across || (s.kept > 0 && l.map.stride.size() >= s.kept && l.map.stride[s.kept - 1] == Dim(1));
  }
  s.shared = !(across && !along) && dims.range(s.steps).second > 8;
  return s;
}

// Coordinates of a linear index over axes [first, end).
void unravel(Launcher& l, const std::vector<Dim>& extent, size_t first, size_t end, V index, std::vector<V>& axes) {
  for (size_t a = end; a-- > first;) {
    axes[a] = a == first ? index : index % l.size(extent[a]);
    if (a > first) index = index / l.size(extent[a]);
  }
}

class Accumulator {
 public:
  Accumulator(Launcher& l, ReduceKind kind, DType dtype, kir::Type type)
      : l_(l), kind_(kind), dtype_(dtype), type_(type) {
    sum_.emplace(kir::var(type_, neutral()));
  }
  void add(const V& v) { sum_->set(combine(sum_->get(), convert(v, type_))); }
  V own() const { return sum_->get(); }

  // Over the lanes of the workgroup.
  V together() {
    const V mine = sum_->get();
    switch (kind_) {
      case ReduceKind::sum: return kir::wg_add(mine);
      case ReduceKind::any:
      case ReduceKind::all:
      case ReduceKind::max:
      case ReduceKind::min: return extreme(mine);
      case ReduceKind::prod: break;
    }
    const auto lanes = static_cast<int>(l_.b().lanes());
    const kir::Shared slots = kir::shared("products", type_, static_cast<uint32_t>(lanes));
    slots.store(kir::lane(), mine);
    kir::barrier();
    for (int n = lanes; n > 1; n = (n + 1) / 2) {
      const int half = (n + 1) / 2;
      kir::If(kir::lane() < n - half,
              [&] { slots.store(kir::lane(), slots[kir::lane()] * slots[kir::lane() + half]); });
      kir::barrier();
    }
    return slots[0];
  }

 private:
  bool largest() const { return kind_ == ReduceKind::max || kind_ == ReduceKind::any; }

  V extreme(const V& mine) {
    const V out = largest() ? kir::wg_max(mine) : kir::wg_min(mine);
    if (!kir::is_float(type_)) return out;
    // NaN wins, whatever lane it is in.
    const V broken = kir::wg_max(kir::cast(kir::u32, kir::is_nan(mine))) != 0;
    return kir::select(broken, kir::constant(type_, std::numeric_limits<double>::quiet_NaN()), out);
  }

  V neutral() const {
    const bool flt = kir::is_float(type_);
    kir::B& b = kir::B::current();
    switch (kind_) {
      case ReduceKind::sum:
      case ReduceKind::any: return kir::constant(type_, 0);
      case ReduceKind::prod:
      case ReduceKind::all: return kir::constant(type_, 1);
      case ReduceKind::max:
        if (flt) return kir::constant(type_, -std::numeric_limits<double>::infinity());
        if (!kir::is_signed(type_)) return kir::constant(type_, 0);
        return b.constant(type_, type_ == kir::i64 ? uint64_t{1} << 63 : uint64_t{1} << 31);
      case ReduceKind::min: break;
    }
    if (flt) return kir::constant(type_, std::numeric_limits<double>::infinity());
    if (type_ == kir::i64) return b.constant(type_, ~uint64_t{0} >> 1);
    if (type_ == kir::u64) return b.constant(type_, ~uint64_t{0});
    return b.constant(type_, type_ == kir::i32 ? 0x7fffffffu : 0xffffffffu);
  }

  V combine(const V& a, const V& v) {
    const V both[2] = {a, v};
    switch (kind_) {
      case ReduceKind::sum: return a + v;
      case ReduceKind::prod: return a * v;
      case ReduceKind::any:
      case ReduceKind::max: return kir::scalar(l_.b(), ScalarOp::max, dtype_, both);
      case ReduceKind::all:
      case ReduceKind::min: break;
    }
    return kir::scalar(l_.b(), ScalarOp::min, dtype_, both);
  }

  Launcher& l_;
  ReduceKind kind_;
  DType dtype_;
  kir::Type type_;
  std::optional<Var> sum_;
};

// The type sums are made in: bools as u32.
std::pair<DType, kir::Type> accumulate_in(const Problem& p) {
  const DType d = p.prologue.code.back().type;
  const auto t = kir::value_type(d);
  if (d == DType::boolean || !t) return {DType::u32, kir::u32};
  const DType wide = *t == kir::f32 ? DType::f32 : *t == kir::i32 ? DType::i32 : *t == kir::u32 ? DType::u32 : d;
  return {wide, *t};
}

Status build_reduce(const Problem& p, const Bid&, BuildCtx& ctx) {
  DimTable& dims = ctx.asked.dims;
  const Shape2 s = shape_of(p, dims);
  const int64_t across = dims.range(s.shared ? s.steps : s.outputs, p.bounds).second;
  Launcher l(ctx, p, "reduce", stream_lanes(ctx.asked.caps, across));
  const int lanes = static_cast<int>(l.b().lanes());
  const auto [dtype, type] = accumulate_in(p);
  Accumulator acc(l, std::get<ReduceDesc>(p.desc).kind, dtype, type);
  std::vector<V> axes(p.extent.size());
  auto value = [&](V step) {
    unravel(l, p.extent, s.kept, p.extent.size(), step, axes);
    ExprInputs in;
    in.axes = axes;
    acc.add(emit_expr(l, p.prologue, in).back());
  };
  auto write = [&](V result) {
    const Part& part = p.parts[0];
    const std::vector<V> kept(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(s.kept));
    std::vector<V> values = {result};
    if (!part.epilogue.empty()) {
      ExprInputs in;
      in.axes = kept;
      in.accumulator = [result](uint16_t) { return result; };
      values = emit_expr(l, part.epilogue, in);
    }
    for (const Output& o : part.outs) {
      const kir::Buffer y = l.operand(o.operand);
      const IndexMap map = map_or_dense(dims, o.map, std::span(p.extent).first(s.kept));
      y.store(map_index(l, map, kept),
              convert(values[part.epilogue.empty() ? 0 : o.result], kir::type_info(y.type()).loaded));
    }
  };
  if (s.shared) {
    unravel(l, p.extent, 0, s.kept, kir::group(), axes);
    const bool whole = dims.divisible(s.steps, lanes).value_or(false);
    const V n = l.size(s.steps);
    kir::For(0, l.size(dims.ceildiv(s.steps, lanes)), [&](V i) {
      const V step = i * lanes + kir::lane();
      if (whole)
        value(step);
      else
        kir::If(step < n, [&] { value(step); });
    });
    const V result = acc.together();
    kir::If(kir::lane() == 0, [&] { write(result); });
    return l.launch(s.outputs);
  }
  const V output = kir::group() * lanes + kir::lane();
  kir::If(output < l.size(s.outputs), [&] {
    unravel(l, p.extent, 0, s.kept, output, axes);
    kir::For(0, l.size(s.steps), [&](V step) { value(step); });
    write(acc.own());
  });
  return l.launch(dims.ceildiv(s.outputs, lanes));
}

OrRefuse<std::vector<Bid>> bid_reduce(const Problem& p, const Asked& asked) {
  if (p.parts.size() != 1 || p.parts[0].outs.empty() || p.prologue.empty())
    return refuse("wants an expression and outputs");
  if (std::get<ReduceDesc>(p.desc).reduced_axes > p.extent.size()) return refuse("reduces more axes than there are");
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(p));
  TERN_ACCEPT(Unit fit, check_bindings(p, layouts, asked));
  TERN_ACCEPT(fit, check_expr(p.prologue, asked.caps));
  TERN_ACCEPT(fit, check_expr(p.parts[0].epilogue, asked.caps));
  for (const Output& o : p.parts[0].outs) {
    if (o.kind != Output::Kind::map) return refuse("writes no row statistics");
    const uint32_t size = dtype_bytes(p.operands[o.operand].type.dtype);
    if ((size == 2 && !asked.caps.f16_storage) || (size == 1 && !asked.caps.byte_storage))
      return refuse("the device stores nothing smaller than a word");
  }
  Bid bid;
  bid.layouts = std::move(layouts);
  bid.numerics = numerics_tag("reduce 1", {}, asked.caps);
  double elements = 1;
  for (Dim d : p.extent) elements *= largest(asked, p, d);
  for (size_t i = 0; i < bid.layouts.size(); ++i) bid.bytes += bytes_of(p.operands[i], bid.layouts[i], p, asked);
  bid.flop = elements * (1 + expr_flop(p.prologue));
  bid.seconds =
      asked.caps.launch_s + std::max(bid.bytes / asked.caps.read_bytes_per_s, bid.flop / asked.caps.flop_per_s);
  bid.variant = shape_of(p, asked.dims).shared ? "shared" : "alone";
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kReduceKernel;
const Candidate kReduceKernel = {"reduce", Family::reduce, kernels::bid_reduce, kernels::build_reduce};

}  // namespace tern
