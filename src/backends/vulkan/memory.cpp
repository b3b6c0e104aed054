#include "backends/vulkan/memory.h"

#include <algorithm>
#include <cstring>

namespace tern::vulkan {
namespace {

constexpr uint64_t kStagingBytes = 4 << 20;
constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

VkPhysicalDeviceMemoryProperties memory_of(const Driver& vk, VkPhysicalDevice device) {
  VkPhysicalDeviceMemoryProperties2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  vk.GetPhysicalDeviceMemoryProperties2(device, &all);
  return all.memoryProperties;
}

// The first type that has `want`, of a heap of at least `least` bytes; -1: none.
int type_with(const VkPhysicalDeviceMemoryProperties& memory, VkMemoryPropertyFlags want, uint64_t least) {
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryType& type = memory.memoryTypes[i];
    if ((type.propertyFlags & want) == want && memory.memoryHeaps[type.heapIndex].size >= least)
      return static_cast<int>(i);
  }
  return -1;
}

// Memory of the device; of it, what the host sees too where that is all of it.
uint32_t device_type(const VkPhysicalDeviceMemoryProperties& memory) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
      largest = std::max(largest, memory.memoryHeaps[i].size);
  }
  for (const VkMemoryPropertyFlags want : {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | kHost,
                                           VkMemoryPropertyFlags{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT}, kHost}) {
    if (const int type = type_with(memory, want, largest); type >= 0) return static_cast<uint32_t>(type);
  }
  return 0;
}

const VulkanBuffer& own(const hal::Buffer& buffer) { return static_cast<const VulkanBuffer&>(buffer); }

}  // namespace

bool has_extension(const Driver& vk, VkPhysicalDevice device, std::string_view name) {
  uint32_t count = 0;
  vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, all.data());
  return std::any_of(all.begin(), all.end(),
                     [&](const VkExtensionProperties& e) { return std::string_view(e.extensionName) == name; });
}

uint64_t heap_bytes(const Driver& vk, VkPhysicalDevice device) {
  const VkPhysicalDeviceMemoryProperties memory = memory_of(vk, device);
  return memory.memoryHeaps[memory.memoryTypes[device_type(memory)].heapIndex].size;
}

Status VulkanBuffer::allocate(Context& context, uint32_t type, bool mapped) {
  const Driver& vk = context.vk;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = std::max<uint64_t>((bytes_ + 15) / 16 * 16, 16);  // bindings end at whole words
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  TERN_OK(checked(vk.CreateBuffer(context.device, &info, nullptr, buffer_.put()), "making a buffer"));
  VkMemoryRequirements need;
  vk.GetBufferMemoryRequirements(context.device, buffer_.get(), &need);
  if ((need.memoryTypeBits >> type & 1) == 0)
    return make_error(Code::unsupported, "the Vulkan device takes no storage buffers in its own memory");
  VkMemoryAllocateInfo memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory.allocationSize = need.size;
  memory.memoryTypeIndex = type;
  TERN_OK(checked(vk.AllocateMemory(context.device, &memory, nullptr, memory_.put()), "allocating a buffer"));
  *used_ += counted_ = need.size;
  TERN_OK(checked(vk.BindBufferMemory(context.device, buffer_.get(), memory_.get(), 0), "allocating a buffer"));
  if (!mapped) return ok();
  void* at = nullptr;
  TERN_OK(checked(vk.MapMemory(context.device, memory_.get(), 0, VK_WHOLE_SIZE, 0, &at), "mapping a buffer"));
  mapped_ = static_cast<std::byte*>(at);
  return ok();
}

Memory::Memory(std::shared_ptr<Context> context, bool staged) : context_(std::move(context)) {
  const Driver& vk = context_->vk;
  const VkPhysicalDeviceMemoryProperties memory = memory_of(vk, context_->physical);
  type_ = device_type(memory);
  heap_ = memory.memoryTypes[type_].heapIndex;
  total_ = memory.memoryHeaps[heap_].size;
  mapped_ = !staged && (memory.memoryTypes[type_].propertyFlags & kHost) == kHost;
  host_type_ = static_cast<uint32_t>(std::max(0, type_with(memory, kHost, 0)));  // every device has one
  knows_budget_ = has_extension(vk, context_->physical, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  VkPhysicalDeviceMaintenance3Properties most{};
  most.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  VkPhysicalDeviceProperties2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  all.pNext = &most;
  vk.GetPhysicalDeviceProperties2(context_->physical, &all);
  most_ = most.maxMemoryAllocationSize;
}

hal::MemoryInfo Memory::info() const {
  const uint64_t own = total_ - std::min<uint64_t>(*used_, total_);
  if (!knows_budget_) return {total_, own};
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  all.pNext = &budget;
  context_->vk.GetPhysicalDeviceMemoryProperties2(context_->physical, &all);
  const uint64_t given = budget.heapBudget[heap_];
  return {total_, std::min(own, given - std::min(given, budget.heapUsage[heap_]))};
}

Result<std::unique_ptr<VulkanBuffer>> Memory::make(uint64_t bytes, uint32_t type, bool mapped) {
  auto buffer = std::make_unique<VulkanBuffer>(context_, bytes, used_);
  TERN_OK(buffer->allocate(*context_, type, mapped));
  return buffer;
}

Result<std::unique_ptr<VulkanBuffer>> Memory::allocate(uint64_t bytes) {
  const uint64_t available = info().available, most = std::min(available, most_);
  const auto refused = [&](const std::string& why) {
    return Error{Code::out_of_memory,
                 "the Vulkan device has no room for a buffer of " + std::to_string(bytes) + " bytes: " + why,
                 {},
                 bytes,
                 most};
  };
  if (bytes > most_) return refused("it takes " + std::to_string(most) + " in one");
  if (bytes > available) return refused(std::to_string(available) + " are available");
  auto made = make(bytes, type_, mapped_);
  if (!made && made.error().code == Code::out_of_memory) return refused("the driver gives no more");
  return made;
}

Result<std::unique_ptr<VulkanBuffer>> Memory::staging(uint64_t bytes) { return make(bytes, host_type_, true); }

// ---- transfers

Result<Transfers> Transfers::open(std::shared_ptr<Context> context, std::shared_ptr<Memory> memory) {
  Transfers out;
  TERN_TRY(out.submitter_, Submitter::open(std::move(context)));
  TERN_TRY(const std::vector<VkCommandBuffer> buffers, out.submitter_.buffers(1));
  out.commands_ = buffers[0];
  out.memory_ = std::move(memory);
  return out;
}

Status Transfers::need_staging() {
  if (staging_ != nullptr) return ok();
  TERN_TRY(staging_, memory_->staging(kStagingBytes));
  return ok();
}

Status Transfers::move(VkBuffer from, VkBuffer to, VkBufferCopy region) {
  TERN_OK(submitter_.begin(commands_));
  submitter_.barrier(commands_);
  submitter_.vk().CmdCopyBuffer(commands_, from, to, 1, &region);
  TERN_OK(submitter_.end(commands_));
  return submitter_.run({&commands_, 1});
}

Status Transfers::upload(std::span<const std::byte> from, hal::Buffer& to, uint64_t at) {
  if (std::byte* mapped = own(to).mapped()) {
    std::memcpy(mapped + at, from.data(), from.size());
    return ok();
  }
  TERN_OK(need_staging());
  for (uint64_t done = 0; done < from.size(); done += kStagingBytes) {
    const uint64_t piece = std::min<uint64_t>(kStagingBytes, from.size() - done);
    std::memcpy(staging_->mapped(), from.data() + done, piece);
    TERN_OK(move(staging_->handle(), own(to).handle(), {0, at + done, piece}));
  }
  return ok();
}

Status Transfers::download(const hal::Buffer& from, uint64_t at, std::span<std::byte> to) {
  if (const std::byte* mapped = own(from).mapped()) {
    std::memcpy(to.data(), mapped + at, to.size());
    return ok();
  }
  TERN_OK(need_staging());
  for (uint64_t done = 0; done < to.size(); done += kStagingBytes) {
    const uint64_t piece = std::min<uint64_t>(kStagingBytes, to.size() - done);
    TERN_OK(move(own(from).handle(), staging_->handle(), {at + done, 0, piece}));
    std::memcpy(to.data() + done, staging_->mapped(), piece);
  }
  return ok();
}

Status Transfers::copy(const hal::Buffer& from, uint64_t from_at, hal::Buffer& to, uint64_t to_at, uint64_t bytes) {
  return move(own(from).handle(), own(to).handle(), {from_at, to_at, bytes});
}

}  // namespace tern::vulkan
