// A decoded kernel.
#pragma once

#include <vector>

#include "backends/cpu/tiles/ops.h"
#include "backends/cpu/tiles/tiles.h"

namespace tern::cpu {

// Offsets are bytes in the frame, the memory of one thread's run.
struct TileIns {
  enum class Kind : uint8_t { pure, load, store, set, first, reduce, branch, loop };
  Kind kind = Kind::pure;
  kir::Type type = kir::u32;     // of the value: first, reduce; of the bounds: loop
  kir::Op op = kir::Op::add;     // reduce: what joins two lanes
  uint8_t width = 1;             // load, store
  bool one = false;              // load, store: the index is uniform; branch: the condition is
  bool array = false;            // load, store: of a workgroup array
  uint8_t stride[4] = {};        // of in: 0 uniform, 1 varying
  uint32_t blocks = 1;           // that the result has
  uint32_t out = 0, in[4] = {};  // load: in[0] the index; store: the values; branch: out is the mask; loop: the index
  uint32_t index = 0;            // store
  uint32_t memory = 0;           // load, store: binding, or offset of the array
  uint32_t end = 0;              // branch, loop: the instruction behind the body
  uint64_t low = 0, high = 0;    // lookup
  PureFn pure = nullptr, blend = nullptr;
  MemoryFn move = nullptr;
};

struct TileProgram::Code {
  uint32_t lanes = 1, frame = 0;
  std::vector<TileIns> code;
  std::vector<std::byte> image;  // the frame's begin: constants, lane numbers, which lanes there are
  struct Scalar {
    uint32_t offset, dim;
  };
  std::vector<Scalar> dims;
  uint32_t group = 0, live = 0;  // offsets
};

}  // namespace tern::cpu
