// Kernels out of text: many in one program, since a driver takes a second or more for each, and the driver's binaries
// kept on disk.
#pragma once

#include <span>

#include "backends/opencl/driver.h"
#include "base/cache/disk_cache.h"
#include "hal/kernel_table.h"

namespace tern::opencl {

// What the driver's objects of one device share.
struct Context {
  const Driver& cl;
  cl_device_id device;
  Owned<cl_context> context;
};

// A kernel, before it has arguments. Lists make objects of their own of it: arguments belong to an object.
struct ClKernel final : hal::Kernel {
  std::shared_ptr<Context> context;
  std::shared_ptr<Owned<cl_program>> program;
  std::string entry;
  uint32_t work_items = 1;
  Result<Owned<cl_kernel>> make() const;
};

// Thread-safe.
class Programs {
 public:
  Programs(std::shared_ptr<Context> context, std::string options, std::string identity, DiskCache cache)
      : context_(std::move(context)),
        options_(std::move(options)),
        identity_(std::move(identity)),
        cache_(std::move(cache)) {}
  // def is one of the program's; all others of it that are not here yet are made with it.
  Result<std::shared_ptr<hal::Kernel>> load(const Program& program, const KernelDef& def);

 private:
  Result<std::vector<std::shared_ptr<ClKernel>>> build(std::span<const KernelDef* const> defs);
  Result<Owned<cl_program>> from_text(std::span<const KernelDef* const> defs);
  Result<Owned<cl_program>> from_binary(std::span<const std::byte> binary);
  Result<std::vector<std::byte>> binary_of(cl_program program);
  std::string log_of(cl_program program) const;

  std::shared_ptr<Context> context_;
  const std::string options_, identity_;
  const DiskCache cache_;
  hal::KernelTable<ClKernel> table_;
};

}  // namespace tern::opencl
