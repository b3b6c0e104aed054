// scan: running sums of rows. A row is one workgroup's, which walks it in steps of a fixed number of elements; each
// lane sums a run of neighbours, and a tree adds the lanes up. So the order depends on the device's lanes alone.
#include "kernels/common/expr.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;
using kir::Var;

constexpr int kRun = 4;  // elements of a lane in one step

Status build_scan(const Problem& problem, const Bid&, BuildCtx& ctx) {
  DimTable& dims = ctx.asked.dims;
  Launcher l(ctx, problem, "scan", stream_lanes(ctx.asked.caps, -1));  // never by the size: the order hangs on it
  const auto x = static_cast<uint16_t>(find_role(problem, Role::x)), out = problem.parts[0].outs[0].operand;
  const kir::Buffer from = l.operand(x), to = l.operand(out);
  const kir::Type type = kir::type_info(from.type()).loaded;
  const V n = l.size(problem.extent[1]), row = kir::group() * n;
  const int step = static_cast<int>(l.b().lanes()) * kRun;
  const Var before = kir::var(type, kir::constant(type, 0));
  kir::For(0, l.size(dims.ceildiv(problem.extent[1], step)), [&](V s) {
    const V first = s * step + kir::lane() * kRun;
    std::vector<Var> sums;
    const Var sum = kir::var(type, kir::constant(type, 0));
    for (int k = 0; k < kRun; ++k) {
      kir::If(first + k < n, [&] { sum.set(sum.get() + from[row + first + k]); });
      sums.push_back(kir::var(type, sum.get()));
    }
    const V base = before.get() + kir::wg_exclusive_add(sum.get());
    for (int k = 0; k < kRun; ++k)
      kir::If(first + k < n, [&] { to.store(row + first + k, base + sums[static_cast<size_t>(k)].get()); });
    const V last = base + sum.get();
    before.set(kir::wg_broadcast(last, kir::constant(kir::u32, static_cast<double>(l.b().lanes() - 1))));
  });
  return l.launch(problem.extent[0]);
}

OrRefuse<std::vector<Bid>> bid_scan(const Problem& problem, const Asked& asked) {
  if (problem.extent.size() != 2 || problem.parts.size() != 1 || problem.parts[0].outs.size() != 1)
    return refuse("wants rows, columns and one output");
  if (!problem.parts[0].epilogue.empty() || !problem.prologue.empty()) return refuse("takes no expression");
  const int x = find_role(problem, Role::x);
  if (x < 0) return refuse("has nothing to read");
  const DType dtype = problem.operands[static_cast<size_t>(x)].type.dtype;
  if (dtype_bytes(dtype) < 4) return refuse("sums of " + std::string(dtype_name(dtype)) + " want a wider type");
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(problem));
  TERN_ACCEPT(Unit fit, check_bindings(problem, layouts, asked));
  (void)fit;
  Bid bid;
  bid.layouts = std::move(layouts);
  bid.numerics = numerics_tag("scan 1", {kRun}, asked.caps);
  for (size_t i = 0; i < bid.layouts.size(); ++i)
    bid.bytes += bytes_of(problem.operands[i], bid.layouts[i], problem, asked);
  bid.flop = largest(asked, problem, problem.extent[0]) * largest(asked, problem, problem.extent[1]);
  bid.seconds = asked.caps.launch_s + bid.bytes / asked.caps.read_bytes_per_s;
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kScanKernel;
const Candidate kScanKernel = {"scan", Family::scan, kernels::bid_scan, kernels::build_scan};

}  // namespace tern
