#define TERN_TILE_OPS base_ops
#include "backends/cpu/tiles/ops_impl.h"

namespace tern::cpu {

const TileOps& tile_ops_base() { return base_ops::kOps; }

}  // namespace tern::cpu
