// Kernels without machine code: an interpreter of kir over tiles. A tile is the lanes of a workgroup; one decoded op
// works on all of them, so decoding costs little beside the work, and values that die early share memory, so that a
// tile's values stay in the first cache. Gives the bits that compiled code gives (NaNs may differ in their payload).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kir/ir.h"

namespace tern::cpu {

class TileProgram {
 public:
  ~TileProgram();
  TileProgram(const TileProgram&) = delete;
  TileProgram& operator=(const TileProgram&) = delete;

  // Expects a kernel that kir's verify() took for a lockstep device. Code::unsupported names an op that it lacks.
  // portable: never uses instructions beyond the least processor of this build; for tests.
  static Result<std::unique_ptr<TileProgram>> make(const kir::Kernel& kernel, bool portable = false);
  static Result<std::unique_ptr<TileProgram>> make(std::span<const std::byte> kir);

  // As kir::CpuEntry: runs groups [first, end). Any number of threads may run one program.
  void run(void* const* buffers, const uint32_t* dims, uint32_t first, uint32_t end) const;
  // Memory that a thread takes while it runs the program.
  uint32_t frame_bytes() const;

  struct Code;

 private:
  explicit TileProgram(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace tern::cpu
