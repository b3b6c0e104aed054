// Pipelines out of SPIR-V, and what the driver made of it kept on disk.
#pragma once

#include <map>

#include "backends/vulkan/driver.h"
#include "base/cache/disk_cache.h"
#include "hal/kernel_table.h"

namespace tern::vulkan {

// What kernels with equally many bindings share.
struct Layout {
  Owned<VkDescriptorSetLayout> set;
  Owned<VkPipelineLayout> pipeline;
};

struct VulkanKernel final : hal::Kernel {
  std::shared_ptr<const Layout> layout;
  Owned<VkPipeline> pipeline;
  std::string entry;
  uint32_t bindings = 0;
};

// Thread-safe.
class Programs {
 public:
  // identity: of driver and device; what the driver made for another is not looked at.
  Programs(std::shared_ptr<Context> context, std::string identity, DiskCache cache)
      : context_(std::move(context)), identity_(std::move(identity)), cache_(std::move(cache)) {}
  // def is one of the program's; all others of it that are not here yet are made with it.
  Result<std::shared_ptr<hal::Kernel>> load(const Program& program, const KernelDef& def);

 private:
  using Kernels = std::vector<std::shared_ptr<VulkanKernel>>;
  Result<Kernels> build(std::span<const KernelDef* const> defs);
  Result<std::shared_ptr<VulkanKernel>> make(const KernelDef& def, VkPipelineCache cache);
  Result<std::shared_ptr<const Layout>> layout(uint32_t bindings);
  Result<Owned<VkPipelineCache>> open_cache(std::span<const std::byte> kept);
  std::vector<std::byte> data_of(VkPipelineCache cache) const;

  std::shared_ptr<Context> context_;
  const std::string identity_;
  const DiskCache cache_;
  std::map<uint32_t, std::shared_ptr<const Layout>> layouts_;  // by bindings; under the table's lock
  hal::KernelTable<VulkanKernel> table_;
};

}  // namespace tern::vulkan
