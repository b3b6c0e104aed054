// What one decoded op does to a whole tile. Written once (ops_impl.h) and compiled for each instruction set that is
// worth a copy; all copies give the same bits.
//
// A value lies in blocks of eight lanes: a varying one has as many blocks as the tile, a uniform one a single block of
// eight equal lanes, read again for each block (stride 0). b1 is a word of 0 or ~0 a lane. Lanes that are off, or
// beyond the workgroup in the last block, hold anything.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kir/ir.h"

namespace tern::cpu {

inline constexpr uint32_t kBlockLanes = 8;

struct PureArgs {
  uint32_t blocks;
  std::byte* out;
  const std::byte* in[3];
  uint32_t stride[3];  // 0: uniform, 1: a block for each
  uint64_t low, high;  // lookup: the table
};
using PureFn = void (*)(const PureArgs&);

struct MemoryArgs {
  uint32_t lanes;
  std::byte* base;         // of the binding or workgroup array
  const uint32_t* index;   // in elements of the view
  const uint32_t* mask;    // null: all lanes are on
  std::byte* value[4];     // parts of a wide load, or what a wide store writes
  uint32_t value_step[4];  // stores: 0 where the value is uniform, else 1
  uint32_t width;
  bool one;  // the index is uniform: one load fills one block; one store writes what the last lane that is on has
};
using MemoryFn = void (*)(const MemoryArgs&);

struct TileOps {
  PureFn (*pure)(kir::Op op, kir::Type type, kir::Type operand);  // null: no such op
  MemoryFn (*load)(kir::Type stored);
  MemoryFn (*store)(kir::Type stored);
  PureFn (*copy)(kir::Type type);   // in[0] -> out
  PureFn (*blend)(kir::Type type);  // in[0] where the mask in[1] is on, else what was there
};

const TileOps& tile_ops_base();
#if defined(__x86_64__)
const TileOps& tile_ops_avx2();  // AVX2, FMA and F16C
#endif

}  // namespace tern::cpu
