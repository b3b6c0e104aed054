// Compiled with AVX2, FMA and F16C (src/backends/CMakeLists.txt), run only where the processor has them.
#if defined(__x86_64__)
#define TERN_TILE_OPS avx2_ops
#include "backends/cpu/tiles/ops_impl.h"

namespace tern::cpu {

const TileOps& tile_ops_avx2() { return avx2_ops::kOps; }

}  // namespace tern::cpu
#endif
