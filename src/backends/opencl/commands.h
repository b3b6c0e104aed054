// A recorded list: kernels with their arguments, which change only where sizes or slots do.
#pragma once

#include "backends/opencl/programs.h"

namespace tern::opencl {

class ClBuffer final : public hal::Buffer {
 public:
  ClBuffer(Owned<cl_mem> memory, uint64_t bytes, std::shared_ptr<std::atomic<uint64_t>> used)
      : memory_(std::move(memory)), bytes_(bytes), used_(std::move(used)) {}
  ~ClBuffer() override { *used_ -= bytes_; }
  uint64_t size() const override { return bytes_; }
  hal::Native native() override { return {memory_.get(), "opencl"}; }
  std::span<std::byte> host() override { return {}; }
  cl_mem memory() const { return memory_.get(); }

 private:
  Owned<cl_mem> memory_;
  uint64_t bytes_;
  std::shared_ptr<std::atomic<uint64_t>> used_;  // of the device
};

class ClCommands final : public hal::Commands {
 public:
  static Result<std::unique_ptr<ClCommands>> record(std::shared_ptr<Context> context, const Program& program,
                                                    uint32_t list,
                                                    std::span<const std::shared_ptr<hal::Kernel>> kernels);
  // Enqueues the list and waits for it. One run at a time.
  Status run(cl_command_queue queue, const hal::Binding& binding, const hal::SubmitOptions& options);

 private:
  struct Number {  // a constant, or a place in the block of sizes
    int64_t constant = 0;
    int32_t block = -1;
  };
  struct RecordedUse {
    BufferId buffer = kNone;
    Number offset, bytes;
  };
  struct Placed {
    cl_mem memory = nullptr;
    uint64_t offset = 0, bytes = 0;
  };
  struct Item {
    enum class Kind : uint8_t { launch, copy, fill } kind = Kind::launch;
    uint32_t step = 0, phase = 0, word = 0;
    std::shared_ptr<ClKernel> kernel;
    Owned<cl_kernel> object;
    Number groups;
    std::vector<Number> scalars;
    std::vector<RecordedUse> uses;
    std::vector<Placed> placed;  // as the object's arguments say now
    std::vector<uint32_t> given;
    bool fresh = true;
  };
  static Result<Item> record_item(const Step& step, std::span<const std::shared_ptr<hal::Kernel>> kernels,
                                  const std::map<Dim, int32_t>& block);
  static Result<Number> number(Dim dim, const std::map<Dim, int32_t>& block);
  Result<Placed> place(const RecordedUse& use, const hal::Binding& binding) const;
  Status launch(cl_command_queue queue, Item& item, const hal::Binding& binding);
  Status enqueue(cl_command_queue queue, Item& item, const hal::Binding& binding);

  std::shared_ptr<Context> context_;
  std::vector<Item> items_;
};

}  // namespace tern::opencl
