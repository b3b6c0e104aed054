// arg_reduce: the index of the largest or smallest element of each row; the first NaN wins, else the first of equals.
// Values are compared as unsigned keys that order like them.
#include <algorithm>

#include "kernels/common/expr.h"
#include "kernels/common/keys.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;
using kir::Var;

Status build_arg_reduce(const Problem& problem, const Bid&, BuildCtx& ctx) {
  const bool largest = std::get<ArgReduceDesc>(problem.desc).largest;
  Launcher l(ctx, problem, "arg_reduce",
             stream_lanes(ctx.asked.caps, ctx.asked.dims.range(problem.extent[1], problem.bounds).second));
  const auto x = static_cast<uint16_t>(find_role(problem, Role::x)), out = problem.parts[0].outs[0].operand;
  const V n = l.size(problem.extent[1]), row = kir::group();
  const int lanes = static_cast<int>(l.b().lanes());
  auto key_at = [&](V c) {
    const V axes[2] = {row, c};
    ExprInputs in;
    in.axes = axes;
    const V v = problem.prologue.empty() ? l.operand(x)[row * n + c] : emit_expr(l, problem.prologue, in).back();
    return order_key(v, largest);
  };
  const V first = key_at(kir::constant(kir::u32, 0));
  const Var best = kir::var(first.type(), kir::constant(first.type(), 0)),
            at = kir::var(kir::u32, kir::constant(kir::u32, 4294967295.0));
  kir::For(0, l.size(ctx.asked.dims.ceildiv(problem.extent[1], lanes)), [&](V i) {
    const V c = i * lanes + kir::lane();
    kir::If(c < n, [&] {
      const V key = key_at(c);
      const V better = best.get() < key || at.get() == kir::constant(kir::u32, 4294967295.0);
      best.set(kir::select(better, key, best.get()));
      at.set(kir::select(better, c, at.get()));
    });
  });
  const V top = kir::wg_max(best.get());
  const V index = kir::wg_min(kir::select(best.get() == top, at.get(), kir::constant(kir::u32, 4294967295.0)));
  const kir::Buffer y = l.operand(out);
  kir::If(kir::lane() == 0, [&] { y.store(row, convert(index, kir::type_info(y.type()).loaded)); });
  return l.launch(problem.extent[0]);
}

OrRefuse<std::vector<Bid>> bid_arg_reduce(const Problem& problem, const Asked& asked) {
  if (problem.extent.size() != 2 || problem.parts.size() != 1 || problem.parts[0].outs.size() != 1)
    return refuse("wants rows, columns and one output");
  if (!problem.parts[0].epilogue.empty()) return refuse("takes no epilogue");
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(problem));
  TERN_ACCEPT(Unit fit, check_bindings(problem, layouts, asked));
  TERN_ACCEPT(fit, check_expr(problem.prologue, asked.caps));
  const int x = find_role(problem, Role::x);
  if (x < 0 && problem.prologue.empty()) return refuse("has nothing to read");
  Bid bid;
  bid.layouts = std::move(layouts);
  bid.numerics = numerics_tag("arg_reduce 1", {}, asked.caps);
  bid.bytes =
      x < 0 ? 0
            : bytes_of(problem.operands[static_cast<size_t>(x)], bid.layouts[static_cast<size_t>(x)], problem, asked);
  bid.seconds = asked.caps.launch_s + bid.bytes / asked.caps.read_bytes_per_s;
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kArgReduceKernel;
const Candidate kArgReduceKernel = {"arg_reduce", Family::arg_reduce, kernels::bid_arg_reduce,
                                    kernels::build_arg_reduce};

}  // namespace tern
