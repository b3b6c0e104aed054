// Matmul of dense operands whose rows both lie along k: lanes along k, a tile of outputs per workgroup, one reduction
// over the lanes at the end. Batched weights, weights made at run time, any type. A lane sums k = lane, lane + L, ...
// ascending; the order of an output depends on K alone.
#include <algorithm>

#include "kernels/matmul/outputs.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;
using kir::Var;

struct Tile {
  int rows = 4, columns = 4;
};

Tile tile_for(int64_t most_rows) { return most_rows <= 1 ? Tile{1, 8} : most_rows <= 2 ? Tile{2, 8} : Tile{4, 4}; }

kir::Type sum_type(const Problem& p, const Part& part, uint16_t x) {
  const auto a = kir::value_type(p.operands[x].type.dtype), b = kir::value_type(p.operands[part.weights[0]].type.dtype);
  if (!a || !b || *a == kir::b1 || *b == kir::b1) return kir::f32;
  if (*a == *b) return *a;
  return *a == kir::f64 || *b == kir::f64 ? kir::f64 : kir::is_float(*a) ? *a : *b;
}

class Dots {
 public:
  Dots(Launcher& l, const Part& part, Tile tile)
      : l_(l),
        p_(l.problem()),
        part_(part),
        tile_(tile),
        x_(static_cast<uint16_t>(find_role(p_, Role::x))),
        type_(sum_type(p_, part, x_)) {}

  Dim groups() {
    DimTable& d = l_.dims();
    return d.mul(p_.extent[0], d.mul(d.ceildiv(p_.extent[1], tile_.rows), d.ceildiv(part_.n, tile_.columns)));
  }

  void emit() {
    DimTable& d = l_.dims();
    m_ = l_.argument(p_.extent[1]), n_ = l_.argument(part_.n), k_ = l_.argument(p_.extent[2]);
    const Dim row_blocks = d.ceildiv(p_.extent[1], tile_.rows), column_blocks = d.ceildiv(part_.n, tile_.columns);
    V g = kir::group();
    const V row_block = row_blocks == Dim(1) ? kir::constant(kir::u32, 0) : g % l_.argument(row_blocks);
    if (row_blocks != Dim(1)) g = g / l_.argument(row_blocks);
    const V column_block = p_.extent[0] == Dim(1) ? g : g % l_.argument(column_blocks);
    batch_ = p_.extent[0] == Dim(1) ? kir::constant(kir::u32, 0) : g / l_.argument(column_blocks);
    for (int i = 0; i < tile_.rows; ++i) rows_.push_back(row_block * tile_.rows + i);
    for (int j = 0; j < tile_.columns; ++j) columns_.push_back(column_block * tile_.columns + j);
    for (int i = 0; i < tile_.rows * tile_.columns; ++i) acc_.push_back(kir::var(type_, kir::constant(type_, 0)));
    const int lanes = static_cast<int>(l_.b().lanes());
    const bool whole = d.divisible(p_.extent[2], lanes).value_or(false);
    kir::For(0, l_.argument(d.ceildiv(p_.extent[2], lanes)), [&](V i) {
      const V k = i * lanes + kir::lane();
      if (whole)
        step(k);
      else
        kir::If(k < k_, [&] { step(k); });
    });
    write();
  }

 private:
  V inside(V index, V count, Dim extent, int tile) {
    return l_.dims().divisible(extent, tile).value_or(false) ? index : kir::min(index, count - 1);
  }

  void step(V k) {
    std::vector<V> w;
    const kir::Buffer weight = l_.operand(part_.weights[0]);
    const V base = std::get<MatmulDesc>(p_.desc).batched_weight ? batch_ * n_ : kir::constant(kir::u32, 0);
    for (const V& c : columns_)
      w.push_back(convert(weight[(base + inside(c, n_, part_.n, tile_.columns)) * k_ + k], type_));
    for (int i = 0; i < tile_.rows; ++i) {
      const V row = inside(rows_[static_cast<size_t>(i)], m_, p_.extent[1], tile_.rows);
      V a;
      if (p_.prologue.empty()) {
        a = convert(l_.operand(x_)[(batch_ * m_ + row) * k_ + k], type_);
      } else {
        const V axes[3] = {batch_, row, k};
        ExprInputs in;
        in.axes = axes;
        a = convert(emit_expr(l_, p_.prologue, in).back(), type_);
      }
      for (int j = 0; j < tile_.columns; ++j) {
        Var& sum = acc_[static_cast<size_t>(i * tile_.columns + j)];
        sum.set(kir::is_float(type_) ? kir::fma(w[static_cast<size_t>(j)], a, sum.get())
                                     : w[static_cast<size_t>(j)] * a + sum.get());
      }
    }
  }

  // Each lane takes one output, so that the epilogue stands in the code once and not once an output.
  void write() {
    const int count = tile_.rows * tile_.columns, lanes = std::min(static_cast<int>(l_.b().lanes()), count);
    std::vector<V> sums;
    for (const Var& a : acc_) sums.push_back(kir::wg_add(a.get()));
    for (int first = 0; first < count; first += lanes) {
      V sum = sums[static_cast<size_t>(first)];
      for (int n = 1; n < lanes; ++n) sum = kir::select(kir::lane() == n, sums[static_cast<size_t>(first + n)], sum);
      const V slot = kir::lane() + first;
      const V row = rows_[0] + slot / tile_.columns, column = columns_[0] + slot % tile_.columns;
      kir::If(kir::lane() < lanes && row < m_ && column < n_, [&] { finish(row, column, sum); });
    }
  }

  void finish(const V& row, const V& column, const V& sum) {
    const Dim extents[3] = {p_.extent[0], p_.extent[1], part_.n};
    const V axes[3] = {batch_, row, column};
    std::vector<V> values = {sum};
    if (!part_.epilogue.empty()) {
      ExprInputs in;
      in.axes = axes;
      in.accumulator = [&](uint16_t) { return sum; };
      values = emit_expr(l_, part_.epilogue, in);
    }
    for (const Output& o : part_.outs) {
      const kir::Buffer y = l_.operand(o.operand);
      y.store(map_index(l_, map_or_dense(l_.dims(), o.map, extents), axes),
              convert(values[part_.epilogue.empty() ? 0 : o.result], kir::type_info(y.type()).loaded));
    }
  }

  Launcher& l_;
  const Problem& p_;
  const Part& part_;
  Tile tile_;
  uint16_t x_;
  kir::Type type_;
  V m_, n_, k_, batch_;
  std::vector<V> rows_, columns_;
  std::vector<Var> acc_;
};

Status build_dots(const Problem& p, const Bid&, BuildCtx& ctx) {
  const int64_t rows = ctx.asked.dims.range(p.extent[1], p.bounds).second;
  for (const Part& part : p.parts) {
    Launcher l(ctx, p, "matmul_dots", floor_power_of_two(std::min(ctx.asked.caps.lanes, ctx.asked.caps.max_lanes)));
    Dots dots(l, part, tile_for(rows));
    dots.emit();
    TERN_OK(l.launch(dots.groups()));
  }
  return ok();
}

OrRefuse<std::vector<Bid>> bid_dots(const Problem& p, const Asked& asked) {
  TERN_ACCEPT(const MatmulRoles r, matmul_roles(p));
  if (std::get<MatmulDesc>(p.desc).weight_is_kn) return refuse("reads weights along k; this one lies along n");
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(p));
  TERN_ACCEPT(Unit fit, check_bindings(p, layouts, asked));
  TERN_ACCEPT(fit, check_expr(p.prologue, asked.caps));
  Bid bid;
  for (const Part& part : p.parts) {
    if (part.weights.size() != 1) return refuse("takes one weight a part");
    TERN_ACCEPT(fit, check_expr(part.epilogue, asked.caps));
    for (const Output& o : part.outs) {
      if (dtype_bytes(p.operands[o.operand].type.dtype) < 4 && !asked.caps.f16_storage)
        return refuse("the device stores no halves");
    }
    bid.flop +=
        2 * largest(asked, p, r.m) * largest(asked, p, r.batch) * largest(asked, p, part.n) * largest(asked, p, r.k);
  }
  bid.layouts = std::move(layouts);
  bid.numerics = numerics_tag("matmul dots 1", {}, asked.caps);
  for (size_t i = 0; i < bid.layouts.size(); ++i) bid.bytes += bytes_of(p.operands[i], bid.layouts[i], p, asked);
  bid.launches = static_cast<int>(p.parts.size());
  bid.seconds = asked.caps.launch_s * bid.launches +
                std::max(bid.bytes / asked.caps.read_bytes_per_s, 4 * bid.flop / asked.caps.flop_per_s);
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kDotsMatmulKernel;
const Candidate kDotsMatmulKernel = {"matmul.dots", Family::matmul, kernels::bid_dots, kernels::build_dots};

}  // namespace tern
