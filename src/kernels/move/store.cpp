// store: state[index[t], :] = cast(prologue(t, :)); an index outside is dropped.
#include <algorithm>

#include "kernels/common/expr.h"
#include "kernels/common/rows.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;

// Elements that a lane stores as one word where the device stores nothing smaller.
int per_lane(const Operand& state, const Caps& caps) {
  const uint32_t size = dtype_bytes(state.type.dtype);
  if (size == 2 && !caps.f16_storage) return 2;
  return size == 1 && !caps.byte_storage ? 4 : 1;
}

Status build_window(const Problem& problem, BuildCtx& ctx, const StoreRoles& r, int64_t first, int64_t rows,
                    const Use& use) {
  DimTable& dims = ctx.asked.dims;
  const Operand& state = problem.operands[r.state];
  const int wide = per_lane(state, ctx.asked.caps);
  const int64_t most = dims.range(dims.ceildiv(problem.extent[1], wide), problem.bounds).second;
  Launcher l(ctx, problem, "store", stream_lanes(ctx.asked.caps, most));
  const auto type = kir::storage_type(state.type.dtype);
  const kir::Buffer y = l.bind(use, "state", *type);
  const V t = kir::group(), n = l.argument(problem.extent[1]), start = l.scalar(first), count = l.scalar(rows);
  const V row = load_index(l, r.index, t);
  const int lanes = static_cast<int>(l.b().lanes());
  const kir::Type loaded = kir::type_info(*type).loaded;
  kir::If(start <= row && row < start + count, [&] {
    kir::For(0, l.argument(dims.ceildiv(problem.extent[1], lanes * wide)), [&](V c) {
      const V at = (c * lanes + kir::lane()) * wide;
      kir::If(at < n, [&] {
        std::vector<V> v;
        for (int k = 0; k < wide; ++k) v.push_back(stored_value(l, r, t, at + k, loaded));
        const V to = (row - start) * n + at;
        if (wide == 1)
          y.store(to, v[0]);
        else
          y.as(*type, wide).store(to / wide, v);
      });
    });
  });
  return l.launch(problem.extent[0]);
}

Status build_store(const Problem& problem, const Bid&, BuildCtx& ctx) {
  const auto r = store_roles(problem);
  if (!r) return make_error(Code::internal, r.why());
  const Operand& state = problem.operands[r->state];
  const int64_t rows = ctx.asked.dims.range(state.type.shape[0], problem.bounds).second;
  return for_windows(problem, r->state, Layout{&kDense, {}}, ctx, [&](int64_t first, int64_t units, Use use) {
    return build_window(problem, ctx, *r, first, first == 0 && units <= 1 ? rows : units, use);
  });
}

OrRefuse<std::vector<Bid>> bid_store(const Problem& problem, const Asked& asked) {
  if (std::get<StoreDesc>(problem.desc).page != 0) return refuse("stores plain rows, not pages of keys and values");
  TERN_ACCEPT(const StoreRoles r, store_roles(problem));
  TERN_ACCEPT(Unit fit, check_index(problem.operands[r.index]));
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(problem));
  TERN_ACCEPT(fit, check_bindings(problem, layouts, asked, {r.state}));
  TERN_ACCEPT(fit, check_expr(problem.prologue, asked.caps));
  const Operand& state = problem.operands[r.state];
  const int wide = per_lane(state, asked.caps);
  if (wide > 1 && !asked.dims.divisible(problem.extent[1], wide).value_or(false))
    return refuse("rows are no whole words, and the device stores nothing smaller");
  TERN_ACCEPT(const int pieces, window_count(state, layouts[r.state], problem.bounds, asked));
  Bid bid;
  bid.layouts = std::move(layouts);
  bid.numerics = numerics_tag("store 1", {}, asked.caps);
  bid.launches = pieces;
  const double elements = largest(asked, problem, problem.extent[0]) * largest(asked, problem, problem.extent[1]);
  bid.bytes = elements * (4 + dtype_bytes(state.type.dtype));
  bid.seconds = asked.caps.launch_s * pieces + bid.bytes / asked.caps.read_bytes_per_s;
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kStoreKernel;
const Candidate kStoreKernel = {"store", Family::store, kernels::bid_store, kernels::build_store};

}  // namespace tern
