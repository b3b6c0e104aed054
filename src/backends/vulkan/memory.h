// Buffers, and how bytes get into them and out of them.
#pragma once

#include <atomic>

#include "backends/vulkan/driver.h"
#include "hal/recorded.h"

namespace tern::vulkan {

class VulkanBuffer final : public hal::Buffer {
 public:
  VulkanBuffer(const std::shared_ptr<Context>& context, uint64_t bytes, std::shared_ptr<std::atomic<uint64_t>> used)
      : memory_(context, context->vk.FreeMemory),
        buffer_(context, context->vk.DestroyBuffer),
        bytes_(bytes),
        used_(std::move(used)) {}
  ~VulkanBuffer() override { *used_ -= counted_; }
  // `type`: of memory. `mapped`: for the host too.
  Status allocate(Context& context, uint32_t type, bool mapped);

  uint64_t size() const override { return bytes_; }
  hal::Native native() override { return {&buffer_, "vulkan"}; }
  std::span<std::byte> host() override { return {}; }
  VkBuffer handle() const { return buffer_.get(); }
  std::byte* mapped() const { return mapped_; }  // null where the host does not see it
  uint64_t serial() const { return serial_; }

 private:
  Owned<VkDeviceMemory> memory_;
  Owned<VkBuffer> buffer_;  // before its memory
  uint64_t bytes_, counted_ = 0;
  const uint64_t serial_ = hal::fresh_serial();
  std::byte* mapped_ = nullptr;
  std::shared_ptr<std::atomic<uint64_t>> used_;  // of the device
};

// The kinds of memory of a device, and what is used of it. Thread-safe.
class Memory {
 public:
  // staged: buffers that the host does not see, also where it could.
  Memory(std::shared_ptr<Context> context, bool staged);
  Result<std::unique_ptr<VulkanBuffer>> allocate(uint64_t bytes);
  // For transfers: memory of the host that the device sees.
  Result<std::unique_ptr<VulkanBuffer>> staging(uint64_t bytes);
  hal::MemoryInfo info() const;

 private:
  Result<std::unique_ptr<VulkanBuffer>> make(uint64_t bytes, uint32_t type, bool mapped);

  std::shared_ptr<Context> context_;
  uint32_t heap_ = 0, type_ = 0, host_type_ = 0;
  bool mapped_ = false, knows_budget_ = false;
  uint64_t total_ = 0, most_ = 0;  // bytes; of one buffer
  std::shared_ptr<std::atomic<uint64_t>> used_ = std::make_shared<std::atomic<uint64_t>>(0);
};

// Moves bytes, by one thread at a time; each call returns when it is done.
class Transfers {
 public:
  static Result<Transfers> open(std::shared_ptr<Context> context, std::shared_ptr<Memory> memory);
  Status upload(std::span<const std::byte> from, hal::Buffer& to, uint64_t at);
  Status download(const hal::Buffer& from, uint64_t at, std::span<std::byte> to);
  Status copy(const hal::Buffer& from, uint64_t from_at, hal::Buffer& to, uint64_t to_at, uint64_t bytes);

 private:
  Status move(VkBuffer from, VkBuffer to, VkBufferCopy region);
  Status need_staging();

  std::shared_ptr<Memory> memory_;
  Submitter submitter_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::unique_ptr<VulkanBuffer> staging_;
};

bool has_extension(const Driver& vk, VkPhysicalDevice device, std::string_view name);
// Bytes of the heap that buffers lie in.
uint64_t heap_bytes(const Driver& vk, VkPhysicalDevice device);

}  // namespace tern::vulkan
