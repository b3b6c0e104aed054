// What every matmul does with its accumulators: epilogue and stores, as dense elements and as int8 blocks.
#pragma once

#include <span>
#include <vector>

#include "kernels/common/blocks.h"
#include "kernels/common/expr.h"

namespace tern::kernels {

struct MatmulRoles {
  uint16_t x = 0;
  Dim batch, m, k;
};
OrRefuse<MatmulRoles> matmul_roles(const Problem& p);

// Refuses outputs that no matmul of this room writes; fills the layouts of everything but x and the weights.
OrRefuse<Unit> matmul_outputs(const Problem& p, const Asked& asked, std::vector<Layout>& layouts);
bool writes_blocks(const Part& part, const Problem& p);

// One vector of lanes of one output row: columns column0 + lane, of which those below `columns` exist. Uniform control.
struct OutputRow {
  kir::V batch, row, column0, columns;
  bool whole = false;  // every column exists
};
void write_outputs(Launcher& l, const Part& part, const OutputRow& at, std::span<const kir::V> accumulators,
                   const kir::Shared& staging);

// Windows of several weights cut alike: calls each(first_tile, tiles, uses) with one use a weight.
Status for_weight_windows(const Problem& p, const Part& part, BuildCtx& ctx,
                          const std::function<Status(int64_t, int64_t, std::vector<Use>)>& each);

// Launches that read so many bytes of a weight, one window each; the bytes may be more than any machine has.
int launches_for(double bytes, const Caps& caps);

// What a workgroup holds: so many rows of x and vectors of rows of the weight.
struct MatmulTile {
  int tokens = 1, vectors = 2;
};
// The bid in its usual tile, and in others that may do better on some machine. one_row: x has no more.
std::vector<Bid> tiled_bids(const Bid& bid, MatmulTile usual, bool one_row, size_t weights);
// Weights of the part that has the most.
size_t most_weights(const Problem& problem);
// The tile that a bid was made for.
MatmulTile tile_of(const Bid& bid);

}  // namespace tern::kernels
