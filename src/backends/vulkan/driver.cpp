#include "backends/vulkan/driver.h"

#include <dlfcn.h>

#include <algorithm>

#include "hal/driver_library.h"

namespace tern::vulkan {
namespace {

constexpr const char* kCure =
    "install libvulkan1 and a driver (the vendor's or mesa-vulkan-drivers, which also has one for processors)";

Result<const Driver*> open_driver() {
  static Driver table{};
  TERN_TRY(void* const library, hal::open_driver_library("libvulkan.so.1", "Vulkan", kCure));
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (get == nullptr) return make_error(Code::unsupported, "libvulkan.so.1 has no vkGetInstanceProcAddr");
  const auto version =
      reinterpret_cast<PFN_vkEnumerateInstanceVersion>(get(VK_NULL_HANDLE, "vkEnumerateInstanceVersion"));
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(VK_NULL_HANDLE, "vkCreateInstance"));
  if (version == nullptr || create == nullptr)
    return make_error(Code::unsupported, "libvulkan.so.1 is of Vulkan 1.0; tern takes 1.1 and later");
  VkApplicationInfo app{};
  app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  app.pApplicationName = "tern";
  app.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &app;
  const VkResult code = create(&info, nullptr, &table.instance);
  if (code == VK_ERROR_INCOMPATIBLE_DRIVER)
    return make_error(Code::not_found, "the Vulkan library knows no driver; " + std::string(kCure));
  TERN_OK(checked(code, "opening the library"));
#define TERN_VK_ENTRY(name)                                                     \
  table.name = reinterpret_cast<PFN_vk##name>(get(table.instance, "vk" #name)); \
  if (table.name == nullptr) return make_error(Code::unsupported, "libvulkan.so.1 has no vk" #name ", of Vulkan 1.1");
#include "backends/vulkan/entries.inc"
#undef TERN_VK_ENTRY
  return &table;
}

}  // namespace

Result<const Driver*> driver() {
  static const Result<const Driver*> opened = open_driver();
  if (!opened) return opened.error();
  return *opened;
}

Result<std::vector<VkPhysicalDevice>> find_devices(const Driver& vk) {
  uint32_t count = 0;
  const VkResult code = vk.EnumeratePhysicalDevices(vk.instance, &count, nullptr);
  std::vector<VkPhysicalDevice> out(code == VK_SUCCESS ? count : 0);
  if (!out.empty()) vk.EnumeratePhysicalDevices(vk.instance, &count, out.data());
  if (out.empty()) return make_error(Code::not_found, "the Vulkan library knows no device; " + std::string(kCure));
  return out;
}

Error failure(VkResult code, std::string_view doing) {
  const std::string what = "Vulkan, " + std::string(doing) + ": ";
  switch (code) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL: return make_error(Code::out_of_memory, what + "out of memory");
    case VK_ERROR_TOO_MANY_OBJECTS:
      return make_error(Code::out_of_memory, what + "the driver takes no more allocations");
    case VK_ERROR_DEVICE_LOST:
      return make_error(Code::device_lost, what + "the device was lost; open it again to go on");
    case VK_ERROR_INITIALIZATION_FAILED:
      return make_error(Code::device_lost, what + "the driver could not start the device");
    default: return make_error(Code::internal, what + "the driver answers " + std::to_string(code));
  }
}

Context::~Context() {
  if (device == VK_NULL_HANDLE) return;
  vk.DeviceWaitIdle(device);
  vk.DestroyDevice(device, nullptr);
}

// ---- command buffers

Result<Submitter> Submitter::open(std::shared_ptr<Context> context) {
  const Driver& vk = context->vk;
  Submitter out;
  out.pool_ = Owned<VkCommandPool>(context, vk.DestroyCommandPool);
  out.fence_ = Owned<VkFence>(context, vk.DestroyFence);
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = context->family;
  TERN_OK(checked(vk.CreateCommandPool(context->device, &pool, nullptr, out.pool_.put()), "making a command pool"));
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  TERN_OK(checked(vk.CreateFence(context->device, &fence, nullptr, out.fence_.put()), "making a fence"));
  out.context_ = std::move(context);
  return out;
}

Result<std::vector<VkCommandBuffer>> Submitter::buffers(uint32_t count) {
  std::vector<VkCommandBuffer> out(count);
  if (count == 0) return out;
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool_.get();
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = count;
  TERN_OK(checked(vk().AllocateCommandBuffers(context_->device, &info, out.data()), "making command buffers"));
  return out;
}

Status Submitter::begin(VkCommandBuffer buffer) const {
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  return checked(vk().BeginCommandBuffer(buffer, &info), "recording");
}

Status Submitter::end(VkCommandBuffer buffer) const {
  VkMemoryBarrier all{};
  all.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  all.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  all.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vk().CmdPipelineBarrier(buffer, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &all, 0, nullptr, 0, nullptr);
  return checked(vk().EndCommandBuffer(buffer), "recording");
}

void Submitter::barrier(VkCommandBuffer buffer) const {
  constexpr VkPipelineStageFlags kStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkMemoryBarrier all{};
  all.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  all.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  all.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                      VK_ACCESS_TRANSFER_WRITE_BIT;
  vk().CmdPipelineBarrier(buffer, kStages, kStages, 0, 1, &all, 0, nullptr, 0, nullptr);
}

Status Submitter::run(std::span<const VkCommandBuffer> buffers) {
  if (buffers.empty()) return ok();
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = static_cast<uint32_t>(buffers.size());
  info.pCommandBuffers = buffers.data();
  const VkFence fence = fence_.get();
  {
    const std::lock_guard lock(context_->queue_mutex);
    TERN_OK(checked(vk().QueueSubmit(context_->queue, 1, &info, fence), "submitting"));
  }
  TERN_OK(checked(vk().WaitForFences(context_->device, 1, &fence, VK_TRUE, UINT64_MAX), "running"));
  return checked(vk().ResetFences(context_->device, 1, &fence), "running");
}

}  // namespace tern::vulkan
