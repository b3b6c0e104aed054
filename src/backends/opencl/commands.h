// A recorded list: kernels with their arguments, which change only where sizes or slots do.
#pragma once

#include "backends/opencl/programs.h"
#include "hal/recorded.h"

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
  uint64_t serial() const { return serial_; }

 private:
  Owned<cl_mem> memory_;
  uint64_t bytes_;
  const uint64_t serial_ = hal::fresh_serial();
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
  struct Argument {       // as an object's arguments say now
    uint64_t buffer = 0;  // its serial
    uint64_t offset = 0;
  };
  struct Item {
    hal::RecordedStep step;
    std::shared_ptr<ClKernel> kernel;
    Owned<cl_kernel> object;
    std::vector<Argument> placed;
    std::vector<uint32_t> given;
    bool fresh = true;
  };
  Status launch(cl_command_queue queue, Item& item, const hal::Binding& binding);
  Status enqueue(cl_command_queue queue, Item& item, const hal::Binding& binding);

  std::shared_ptr<Context> context_;
  std::vector<Item> items_;
};

}  // namespace tern::opencl
