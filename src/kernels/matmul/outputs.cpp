#include "kernels/matmul/outputs.h"

#include <algorithm>
#include <numeric>

namespace tern::kernels {

using kir::V;

OrRefuse<MatmulRoles> matmul_roles(const Problem& p) {
  const int x = find_role(p, Role::x);
  if (x < 0 || p.extent.size() != 3 || p.parts.empty()) return refuse("wants x, three extents and parts");
  for (const Part& part : p.parts) {
    if (part.weights.empty() || part.outs.empty()) return refuse("a part without weight or output");
    for (const Output& o : part.outs) {
      if (o.kind != Output::Kind::map) return refuse("writes no row statistics");
    }
  }
  return MatmulRoles{static_cast<uint16_t>(x), p.extent[0], p.extent[1], p.extent[2]};
}

bool writes_blocks(const Part& part, const Problem& p) {
  return std::any_of(part.outs.begin(), part.outs.end(),
                     [&](const Output& o) { return p.operands[o.operand].layout.def == &kActInt8; });
}

OrRefuse<Unit> matmul_outputs(const Problem& p, const Asked& asked, std::vector<Layout>& layouts) {
  layouts.assign(p.operands.size(), Layout{&kDense, {}});
  for (const Part& part : p.parts) {
    TERN_ACCEPT(Unit fit, check_expr(part.epilogue, asked.caps));
    (void)fit;
    for (const Output& o : part.outs) {
      const Operand& out = p.operands[o.operand];
      if (out.layout.def == &kActInt8) {
        layouts[o.operand] = out.layout;
        if (!asked.dims.divisible(part.n, kBlock).value_or(false)) return refuse("outputs are no whole blocks of 32");
        if (asked.caps.max_lanes < kBlock) return refuse("int8 blocks want 32 lanes");
        continue;
      }
      if (!is_dense(out.layout)) return refuse("writes no " + std::string(out.layout.def->name));
      if (dtype_bytes(out.type.dtype) < 4 && !asked.caps.f16_storage) return refuse("the device stores no halves");
    }
    for (const auto& load : part.epilogue.loads) {
      const Operand& o = p.operands[load.operand];
      if (!is_dense(o.layout) || o.type.format) return refuse("an epilogue reads dense operands only");
    }
  }
  return Unit{};
}

void write_outputs(Launcher& l, const Part& part, const OutputRow& at, std::span<const V> accumulators,
                   const kir::Shared& staging) {
  const Problem& p = l.problem();
  const V column = at.column0 + kir::lane();
  const V axes[3] = {at.batch, at.row, column};
  const Dim extents[3] = {p.extent[0], p.extent[1], part.n};
  auto body = [&] {
    std::vector<V> values = {accumulators[0]};
    if (!part.epilogue.empty()) {
      ExprInputs in;
      in.axes = axes;
      in.lane_axes = 2;
      in.accumulator = [&](uint16_t i) { return accumulators[i]; };
      values = emit_expr(l, part.epilogue, in);
    }
    for (const Output& o : part.outs) {
      const V v = values[part.epilogue.empty() ? 0 : o.result];
      if (p.operands[o.operand].layout.def == &kActInt8) {
        store_block(l, o.operand, at.row, l.argument(part.n), at.column0 / static_cast<int>(kBlock),
                    convert(v, kir::f32), staging);
      } else {
        const kir::Buffer y = l.operand(o.operand);
        y.store(map_index(l, map_or_dense(l.dims(), o.map, extents), axes, 2),
                convert(v, kir::type_info(y.type()).loaded));
      }
    }
  };
  if (at.whole) return body();
  // Blocks come in whole vectors, so there the condition is one of the vector, and uniform.
  if (writes_blocks(part, p))
    kir::If(at.column0 < at.columns, body);
  else
    kir::If(column < at.columns, body);
}

Status for_weight_windows(const Problem& p, const Part& part, BuildCtx& ctx,
                          const std::function<Status(int64_t, int64_t, std::vector<Use>)>& each) {
  const Caps& caps = ctx.asked.caps;
  int64_t tiles = 0, most = INT64_MAX, step = 1;
  bool fits = true;
  std::vector<int64_t> unit;
  for (uint16_t w : part.weights) {
    const Operand& o = p.operands[w];
    const auto bytes = o.layout.def->unit_bytes(ctx.asked.dims, o.type, o.layout.tile);
    const int64_t size = bytes ? bytes->constant().value_or(0) : 0;
    if (size <= 0) return make_error(Code::internal, "a weight has no window unit");
    const auto n = part.n.constant();
    const int64_t rows = o.layout.def->window_unit(o.layout.tile);
    if (!n) return make_error(Code::internal, "a windowed weight has a symbolic number of rows");
    tiles = *n / rows + (*n % rows != 0 ? 1 : 0);
    const auto limit = static_cast<int64_t>(std::min<uint64_t>(caps.max_binding_bytes, INT64_MAX / 2));
    fits = fits && tiles * size <= limit;
    most = std::min(most, limit / size);
    step = std::lcm(step, caps.offset_alignment / std::gcd<int64_t>(size, caps.offset_alignment));
    unit.push_back(size);
  }
  if (fits)
    most = tiles;
  else
    most = most / step * step;
  if (most <= 0) return make_error(Code::limit, "one tile of a weight exceeds the device's binding limit");
  for (int64_t first = 0; first < tiles; first += most) {
    const int64_t count = std::min(most, tiles - first);
    std::vector<Use> uses;
    for (size_t i = 0; i < unit.size(); ++i) {
      uses.push_back(fits ? ctx.whole(part.weights[i]) : ctx.window(part.weights[i], first * unit[i], count * unit[i]));
    }
    TERN_OK(each(first, count, std::move(uses)));
  }
  return ok();
}

int launches_for(double bytes, const Caps& caps) {
  constexpr double kMost = 1e9;  // beyond what the number holds no plan is made anyway
  return static_cast<int>(std::min(bytes / static_cast<double>(caps.max_binding_bytes), kMost)) + 1;
}

std::vector<Bid> tiled_bids(const Bid& bid, MatmulTile usual, bool one_row, size_t weights) {
  std::vector<MatmulTile> tiles = {usual};
  const auto others = [&](std::initializer_list<MatmulTile> more) {
    for (const MatmulTile& t : more) {
      if (t.tokens != usual.tokens || t.vectors != usual.vectors) tiles.push_back(t);
    }
  };
  if (one_row)
    others({{1, 1}, {1, 2}});
  else if (weights > 1)
    others({{1, 1}, {2, 1}, {3, 1}, {4, 1}});
  else
    others({{2, 1}, {3, 1}, {4, 1}, {6, 1}, {8, 1}, {2, 2}, {3, 2}, {4, 2}});
  std::vector<Bid> out;
  for (const MatmulTile& t : tiles) {
    out.push_back(bid);
    out.back().variant = "t" + std::to_string(t.tokens) + " u" + std::to_string(t.vectors);
    out.back().param = {t.tokens, t.vectors};
  }
  return out;
}

size_t most_weights(const Problem& problem) {
  size_t most = 1;
  for (const Part& part : problem.parts) most = std::max(most, part.weights.size());
  return most;
}

MatmulTile tile_of(const Bid& bid) { return {bid.param[0], bid.param[1]}; }

}  // namespace tern::kernels
