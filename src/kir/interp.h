// The oracle of all emitters: runs a kernel as ir.h says, lane by lane, and reports what the lanes of a real device
// would fight over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kir/ir.h"

namespace tern::kir {

struct InterpBuffer {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
};

struct InterpOptions {
  uint32_t subgroup = 0;  // lanes of a subgroup; 0: the whole workgroup (lockstep). Lanes are dealt in order.
  // Two lanes, one barrier epoch, one write; two groups, one write; reads of workgroup words that nobody wrote.
  bool detect_races = true;
};

// Runs groups [group0, group1) one after the other. Expects a kernel that verify() took. An error (Code::invalid) names
// the kernel, the node and the index: a race, an index outside its binding or array, an uninitialised workgroup read,
// an integer division by zero. Buffers may be half written then. Thread-safe for different buffers.
Status interpret(const Kernel& kernel, std::span<const InterpBuffer> buffers, std::span<const uint32_t> dims,
                 uint32_t group0, uint32_t group1, const InterpOptions& options = {});

}  // namespace tern::kir
