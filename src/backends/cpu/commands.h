// A recorded list on the CPU: phases of resolved work items.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/object_loader.h"
#include "backends/cpu/team.h"
#include "backends/cpu/tiles/tiles.h"
#include "hal/recorded.h"

namespace tern::cpu {

// The entry of every kir kernel: runs groups [first, end).
using Entry = void (*)(void* const* buffers, const uint32_t* dims, uint32_t first, uint32_t end);

// Machine code, or else the same kernel for the tile interpreter.
struct CpuKernel final : hal::Kernel {
  std::unique_ptr<LoadedObject> object;
  Entry entry = nullptr;
  std::unique_ptr<TileProgram> tiles;

  void run(void* const* buffers, const uint32_t* dims, uint32_t first, uint32_t end) const {
    if (entry != nullptr)
      entry(buffers, dims, first, end);
    else
      tiles->run(buffers, dims, first, end);
  }
};

struct Item {
  using Kind = hal::RecordedStep::Kind;
  Kind kind = Kind::launch;
  std::shared_ptr<CpuKernel> kernel;
  hal::Number groups;  // launch: groups; copy and fill: unused
  uint32_t first_use = 0;
  uint32_t first_scalar = 0;
  uint32_t word = 0;
  uint32_t step = 0;  // of the list, for errors and profiles
};
class CpuCommands final : public hal::Commands {
 public:
  static Result<std::unique_ptr<CpuCommands>> record(const Program& program, uint32_t list,
                                                     std::span<const std::shared_ptr<hal::Kernel>> kernels);
  // Resolves windows and scalars for this binding, then runs every phase on the team.
  Status run(Team& team, const hal::Binding& binding, const hal::SubmitOptions& options);

 private:
  Status resolve(const hal::Binding& binding);
  void run_phase(Team& team, unsigned member, uint32_t phase);
  void run_item(uint32_t item, int64_t first, int64_t end);

  std::vector<Item> items_;
  std::vector<uint32_t> phase_end_;  // items of phase p: [phase_end_[p-1], phase_end_[p])
  std::vector<hal::RecordedUse> uses_;
  std::vector<hal::Number> scalars_;
  // Resolved, one run at a time.
  std::vector<void*> pointers_;
  std::vector<uint64_t> bytes_;
  std::vector<uint32_t> values_;
  std::vector<int64_t> groups_;
  struct alignas(64) Counter {
    std::atomic<int64_t> next{0};
  };
  std::unique_ptr<Counter[]> counters_;
};

}  // namespace tern::cpu
