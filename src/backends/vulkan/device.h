// Vulkan devices: GPUs, and processors behind software drivers, of Vulkan 1.1 and later.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hal/described.h"
#include "hal/device.h"

namespace tern::vulkan {

// In the order of their numbers. Code::not_found, with what would bring one.
Result<std::vector<hal::Description>> list_devices();

struct VulkanOptions {
  unsigned index = 0;
  // "staged": the host does not see buffers, also where it could. Empty: what suits the device.
  std::string form;
  std::string cache_dir;  // of compiled pipelines; empty: none
};
// Thread-safe, as its queues are not.
Result<std::unique_ptr<hal::Device>> open_vulkan(const VulkanOptions& options);

}  // namespace tern::vulkan
