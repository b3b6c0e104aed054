// Runs a Program on one device: buffers, slots, sizes, ranges. Knows nothing of graphs or kernels' making.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "hal/device.h"
#include "program/program.h"

namespace tern::runtime {

// What all instances of one compiled program share; immutable.
struct LoadedProgram {
  Program program;
  std::shared_ptr<hal::Device> device;
  std::vector<std::shared_ptr<hal::Kernel>> kernels;    // one per KernelDef
  std::vector<std::shared_ptr<hal::Buffer>> constants;  // one per BufferId that the graph's own tensors fill; else null
};

// Memory of a list, for every size of its range.
Result<MemoryPlan> plan_list(const LoadedProgram& loaded, uint32_t list);
bool holds(const RangeDef& range, std::span<const int64_t> symbols);

struct Sizes {
  uint64_t state = 0, scratch = 0, io = 0;  // bytes an instance holds
};
Result<Sizes> instance_sizes(const LoadedProgram& loaded);

// One set of states and scratch memory. Used by one thread at a time.
class Instance {
 public:
  // params: one buffer per BufferId of origin param (others null). Memory is asked for here; a refusal names need and
  // have.
  static Result<std::unique_ptr<Instance>> open(std::shared_ptr<const LoadedProgram> loaded,
                                                std::vector<std::shared_ptr<hal::Buffer>> params);

  // Takes the symbols' values: guards are tested, the range is chosen, sizes are evaluated.
  Status bind(std::span<const int64_t> symbols);
  // Submits the bound range's list. Where it binds late sizes, this waits for each of them.
  Result<hal::Ticket> submit(const hal::SubmitOptions& options);
  // Runs the list that depends on parameters only.
  Status prepare();

  hal::Queue& queue() { return *queue_; }
  hal::Buffer& buffer(BufferId id) { return *buffers_[id]; }
  uint64_t bytes(BufferId id) const;  // at the bound sizes
  Sizes held() const;                 // of the buffers that are there
  Result<int64_t> value(Dim dim) const { return program().dims->eval(dim, symbols_); }
  const Program& program() const { return loaded_->program; }
  const std::shared_ptr<const LoadedProgram>& loaded() const { return loaded_; }
  uint32_t bound_list() const { return program().ranges[range_].list; }
  Status zero(BufferId id);

 private:
  Instance() = default;
  Status allocate(std::vector<std::shared_ptr<hal::Buffer>> params);
  Status plan_lists();
  Status check_guards(std::optional<uint32_t> given) const;
  Status fill_block();
  Result<hal::Ticket> submit_parts(const RangeDef& range, const hal::SubmitOptions& options);
  Status take_late(uint32_t list, const Step& step);

  std::shared_ptr<const LoadedProgram> loaded_;
  std::unique_ptr<hal::Queue> queue_;
  std::vector<std::shared_ptr<hal::Buffer>> buffers_;  // per BufferId; null for temps
  std::shared_ptr<hal::Buffer> arena_;
  std::vector<std::vector<hal::Slot>> slots_;             // per list that a range or prepare names
  std::vector<std::unique_ptr<hal::Commands>> commands_;  // the same
  std::vector<int64_t> symbols_, block_;
  std::set<uint32_t> late_known_;  // late symbols that this run has bound
  std::vector<uint64_t> bytes_;
  size_t range_ = 0;
  bool bound_ = false;
};

}  // namespace tern::runtime
