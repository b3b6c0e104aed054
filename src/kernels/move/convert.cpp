// convert: float rows as int8 blocks (kActInt8), one scale and sum a block of 32.
#include "kernels/common/blocks.h"
#include "kernels/common/expr.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;

constexpr int64_t kBlocksAGroup = 8;

Status build_convert(const Problem& problem, const Bid&, BuildCtx& ctx) {
  DimTable& dims = ctx.asked.dims;
  const auto x = static_cast<uint16_t>(find_role(problem, Role::x)),
             out = static_cast<uint16_t>(find_role(problem, Role::out));
  Launcher l(ctx, problem, "to_blocks", kBlock);
  const kir::Shared staging = block_staging();
  const Dim blocks = dims.floordiv(problem.extent[1], kBlock), pieces = dims.ceildiv(blocks, kBlocksAGroup);
  const V columns = l.argument(problem.extent[1]);
  const V row = pieces == Dim(1) ? kir::group() : kir::group() / l.argument(pieces);
  const V first = pieces == Dim(1) ? kir::constant(kir::u32, 0) : kir::group() % l.argument(pieces) * kBlocksAGroup;
  kir::For(first, kir::min(first + kBlocksAGroup, l.argument(blocks)), [&](V b) {
    const V value = convert(l.operand(x)[row * columns + b * static_cast<int>(kBlock) + kir::lane()], kir::f32);
    store_block(l, out, row, columns, b, value, staging);
  });
  return l.launch(dims.mul(problem.extent[0], pieces));
}

OrRefuse<std::vector<Bid>> bid_convert(const Problem& problem, const Asked& asked) {
  const int x = find_role(problem, Role::x), out = find_role(problem, Role::out);
  if (x < 0 || out < 0 || problem.operands.size() != 2 || problem.extent.size() != 2)
    return refuse("wants rows and their blocks");
  if (problem.operands[x].type.format || !is_dense(problem.operands[x].layout)) return refuse("reads dense floats");
  if (!is_float(problem.operands[x].type.dtype)) return refuse("reads floats");
  if (problem.operands[out].layout && problem.operands[out].layout.def != &kActInt8)
    return refuse("writes int8 blocks only");
  if (!asked.dims.divisible(problem.extent[1], kBlock).value_or(false)) return refuse("rows are no whole blocks of 32");
  if (asked.caps.max_lanes < kBlock) return refuse("wants 32 lanes");
  Bid bid;
  bid.layouts.assign(2, Layout{&kDense, {}});
  const Layout asked_for = problem.operands[out].layout;
  bid.layouts[static_cast<size_t>(out)] = asked_for ? asked_for : Layout{&kActInt8, {}};
  TERN_ACCEPT(Unit fit, check_bindings(problem, bid.layouts, asked));
  (void)fit;
  bid.numerics = numerics_tag("blocks 1", {}, asked.caps);
  bid.bytes = largest(asked, problem, problem.extent[0]) * largest(asked, problem, problem.extent[1]) * 5.25;
  bid.seconds = asked.caps.launch_s + bid.bytes / asked.caps.read_bytes_per_s;
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kConvertKernel;
const Candidate kConvertKernel = {"convert", Family::convert, kernels::bid_convert, kernels::build_convert};

}  // namespace tern
