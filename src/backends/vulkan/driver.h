// The Vulkan loader, opened at run time, its entries as a table; devices, and what they can do.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/caps.h"
#include "tern/result.h"

namespace tern::vulkan {

struct Driver {
  VkInstance instance;
#define TERN_VK_ENTRY(name) PFN_vk##name name;
#include "backends/vulkan/entries.inc"
#undef TERN_VK_ENTRY
};

// libvulkan.so.1 and one instance, opened once and never closed: drivers leave threads behind. Code::not_found with
// what would bring it.
Result<const Driver*> driver();
// In the order in which drivers name them. Code::not_found where there is none.
Result<std::vector<VkPhysicalDevice>> find_devices(const Driver& vk);

// What a code of the driver means here; `doing`: "allocating a buffer".
Error failure(VkResult code, std::string_view doing);
inline Status checked(VkResult code, std::string_view doing) {
  if (code == VK_SUCCESS) return ok();
  return failure(code, doing);
}

// What the driver's objects of one device share. Ends them with it.
struct Context {
  explicit Context(const Driver& driver) : vk(driver) {}
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& vk;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::mutex queue_mutex;  // a queue takes one submission at a time
  uint32_t family = 0;
  uint32_t most_groups = 65535;  // of a dispatch
  uint64_t most_binding = 0;     // bytes
  uint64_t offset_alignment = 0;
};

// The driver's answers, each where it has one.
struct Abilities {
  VkPhysicalDeviceProperties properties{};
  std::string driver;  // its name and version
  VkPhysicalDeviceSubgroupProperties subgroup{};
  bool int64 = false, float64 = false, storage16 = false, storage8 = false, float_controls = false, dot = false,
       fast_dot = false, texels = false;
};
Abilities abilities_of(const Driver& vk, VkPhysicalDevice device);
Caps caps_of(const Abilities& abilities, uint64_t memory);

// Code::unsupported where the device has no compute queue or is of Vulkan 1.0. Opens it with all that `abilities` says.
Result<std::shared_ptr<Context>> open_context(const Driver& vk, VkPhysicalDevice device, const Abilities& abilities);

// An object of a device, destroyed with it.
template <class T>
class Owned {
 public:
  using Destroy = void(VKAPI_PTR*)(VkDevice, T, const VkAllocationCallbacks*);
  Owned() = default;
  Owned(std::shared_ptr<Context> context, Destroy destroy) : context_(std::move(context)), destroy_(destroy) {}
  Owned(Owned&& o) noexcept
      : context_(std::move(o.context_)), destroy_(o.destroy_), object_(std::exchange(o.object_, T{})) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(context_, o.context_), std::swap(destroy_, o.destroy_), std::swap(object_, o.object_);
    return *this;
  }
  ~Owned() {
    if (object_ != T{}) destroy_(context_->device, object_, nullptr);
  }
  T get() const { return object_; }
  T* put() { return &object_; }  // where a driver writes it

 private:
  std::shared_ptr<Context> context_;
  Destroy destroy_ = nullptr;
  T object_{};
};

// Command buffers of one thread at a time, and a fence to wait with.
class Submitter {
 public:
  static Result<Submitter> open(std::shared_ptr<Context> context);
  // `count` more, which live as long as this.
  Result<std::vector<VkCommandBuffer>> buffers(uint32_t count);
  Status begin(VkCommandBuffer buffer) const;
  // Ends it, so that the host sees what it wrote.
  Status end(VkCommandBuffer buffer) const;
  // In order, and waits for them.
  Status run(std::span<const VkCommandBuffer> buffers);
  // What comes before is seen by what comes behind.
  void barrier(VkCommandBuffer buffer) const;
  const Driver& vk() const { return context_->vk; }

 private:
  std::shared_ptr<Context> context_;
  Owned<VkCommandPool> pool_;
  Owned<VkFence> fence_;
};

}  // namespace tern::vulkan
