// Pipelines out of SPIR-V, and what the driver made of it kept on disk.
#pragma once

#include <map>

#include "backends/vulkan/driver.h"
#include "base/cache/disk_cache.h"
#include "hal/kernel_table.h"

namespace tern::vulkan {

// What kernels with the same bindings share.
struct Layout {
  Owned<VkDescriptorSetLayout> set, texels;  // sets 0 and 1
  Owned<VkPipelineLayout> pipeline;
};

struct VulkanKernel final : hal::Kernel {
  std::shared_ptr<const Layout> layout;
  Owned<VkPipeline> pipeline;
  std::string entry;
  uint32_t bindings = 0;
  std::vector<uint32_t> texels;  // of set 1: binding * 8 + the logarithm of a texel's bytes
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
  Result<std::shared_ptr<const Layout>> layout(uint32_t bindings, const std::vector<uint32_t>& texels);
  Result<Owned<VkPipelineCache>> open_cache(std::span<const std::byte> kept);
  std::vector<std::byte> data_of(VkPipelineCache cache) const;

  std::shared_ptr<Context> context_;
  const std::string identity_;
  const DiskCache cache_;
  // By bindings and texels; under the table's lock.
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::shared_ptr<const Layout>> layouts_;
  hal::KernelTable<VulkanKernel> table_;
};

}  // namespace tern::vulkan
