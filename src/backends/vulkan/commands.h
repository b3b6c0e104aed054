// A recorded list: command buffers that are recorded again only where sizes or slots changed.
#pragma once

#include "backends/vulkan/memory.h"
#include "backends/vulkan/programs.h"
#include "hal/recorded.h"

namespace tern::vulkan {

class VulkanCommands final : public hal::Commands {
 public:
  static Result<std::unique_ptr<VulkanCommands>> record(std::shared_ptr<Context> context, const Program& program,
                                                        uint32_t list,
                                                        std::span<const std::shared_ptr<hal::Kernel>> kernels);
  // Submits the list and waits for it. One run at a time.
  Status run(const hal::Binding& binding, const hal::SubmitOptions& options);

 private:
  struct Place {
    uint64_t buffer = 0;  // its serial
    VkBuffer handle = VK_NULL_HANDLE;
    uint64_t offset = 0, bytes = 0;
    bool operator==(const Place&) const = default;
  };
  struct Item {
    hal::RecordedStep step;
    std::shared_ptr<VulkanKernel> kernel;
    VkDescriptorSet sets[2] = {};            // of storage buffers, and of texels where the kernel has them
    std::vector<Owned<VkBufferView>> views;  // of the kernel's texels
    // As the command buffers say now.
    std::vector<Place> placed;
    std::vector<uint32_t> words;  // push constants: the first group, then dims
    uint32_t groups = 0;
  };

  Status make_sets();
  // Whether anything of the item is not as it was.
  Result<bool> resolve(Item& item, const hal::Binding& binding);
  Status check(const Item& item) const;
  void point_storage(const Item& item) const;
  Status point_texels(Item& item) const;
  void encode(VkCommandBuffer buffer, Item& item);
  // In pieces of so many steps, a command buffer each.
  Status record_pieces(uint32_t steps);
  Status run_pieces(const hal::SubmitOptions& options);

  std::shared_ptr<Context> context_;
  Owned<VkDescriptorPool> sets_;
  Submitter submitter_;
  std::vector<Item> items_;
  std::vector<VkCommandBuffer> buffers_;
  uint32_t piece_ = 0;  // steps in each of them; 0: none is recorded
};

}  // namespace tern::vulkan
