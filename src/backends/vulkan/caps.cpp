#include <algorithm>

#include "backends/vulkan/memory.h"
#include "base/cpu.h"

namespace tern::vulkan {
namespace {

// Features and properties, by the versions and extensions that have them. One chain serves to ask and to open.
struct Chain {
  VkPhysicalDeviceFeatures2 features{};
  VkPhysicalDevice16BitStorageFeatures storage16{};
  VkPhysicalDevice8BitStorageFeatures storage8{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{};
  std::vector<const char*> extensions;

  Chain(const Driver& vk, VkPhysicalDevice device, uint32_t version) {
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    storage16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
    storage8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES;
    dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
    features.pNext = &storage16;
    void** end = &storage16.pNext;
    const auto add = [&](auto& one, uint32_t since, const char* extension) {
      if (version < since) {
        if (!has_extension(vk, device, extension)) return;
        extensions.push_back(extension);
      }
      *end = &one;
      end = &one.pNext;
    };
    add(storage8, VK_API_VERSION_1_2, VK_KHR_8BIT_STORAGE_EXTENSION_NAME);
    add(dot, VK_API_VERSION_1_3, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    if (version < VK_API_VERSION_1_2 && has_extension(vk, device, VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME))
      extensions.push_back(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME);
    vk.GetPhysicalDeviceFeatures2(device, &features);
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
};

// A compute queue; one without graphics is the better one.
Result<uint32_t> compute_family(const Driver& vk, VkPhysicalDevice device) {
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> all(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, all.data());
  for (const VkQueueFlags without : {VkQueueFlags{VK_QUEUE_GRAPHICS_BIT}, VkQueueFlags{0}}) {
    for (uint32_t i = 0; i < count; ++i) {
      if ((all[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0 && (all[i].queueFlags & without) == 0) return i;
    }
  }
  return make_error(Code::unsupported, "the Vulkan device has no queue for computing");
}

}  // namespace

Abilities abilities_of(const Driver& vk, VkPhysicalDevice device) {
  Abilities out;
  out.subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  VkPhysicalDeviceProperties2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  all.pNext = &out.subgroup;
  vk.GetPhysicalDeviceProperties2(device, &all);
  const uint32_t version = all.properties.apiVersion;
  out.properties = all.properties;
  const Chain chain(vk, device, version);
  out.int64 = chain.features.features.shaderInt64 != VK_FALSE;
  out.float64 = chain.features.features.shaderFloat64 != VK_FALSE;
  out.storage16 = chain.storage16.storageBuffer16BitAccess != VK_FALSE;
  out.storage8 = chain.storage8.storageBuffer8BitAccess != VK_FALSE;
  out.dot = chain.dot.shaderIntegerDotProduct != VK_FALSE;
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  VkPhysicalDeviceFloatControlsProperties floats{};
  floats.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
  VkPhysicalDeviceShaderIntegerDotProductProperties dot{};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES;
  out.subgroup.pNext = nullptr;
  all.pNext = nullptr;
  const auto add = [&](auto& one, bool there) {
    if (there) one.pNext = std::exchange(all.pNext, &one);
  };
  const bool since_1_2 = version >= VK_API_VERSION_1_2;
  add(driver, since_1_2 || has_extension(vk, device, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME));
  add(floats, since_1_2 || has_extension(vk, device, VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME));
  add(dot, out.dot);
  vk.GetPhysicalDeviceProperties2(device, &all);
  out.driver = driver.driverName[0] == '\0'
                   ? "driver " + std::to_string(all.properties.driverVersion)
                   : std::string(driver.driverName) + (driver.driverInfo[0] == '\0' ? "" : " ") + driver.driverInfo;
  // Its loads from storage buffers go lane by lane through memory, its fetches of texels through registers: SmolLM2
  // decodes several times faster with them.
  out.texels = driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
  out.float_controls = floats.shaderSignedZeroInfNanPreserveFloat32 != VK_FALSE;
  out.fast_dot = dot.integerDotProduct4x8BitPackedMixedSignednessAccelerated != VK_FALSE;
  return out;
}

Caps caps_of(const Abilities& abilities, uint64_t memory) {
  const VkPhysicalDeviceLimits& limits = abilities.properties.limits;
  Caps caps;
  caps.device = "vulkan";
  caps.form = KernelForm::spirv;
  caps.language = "spirv";
  if (abilities.float_controls) caps.language += "+float_controls";
  if (abilities.fast_dot) caps.language += "+integer_dot";
  if (abilities.texels) caps.language += "+texels";
  caps.isa = caps.language + ", " + abilities.properties.deviceName + ", " + abilities.driver;
  const bool processor = abilities.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  caps.workers = processor ? allowed_cores() : 1;  // Vulkan does not tell
  caps.max_lanes = std::min({limits.maxComputeWorkGroupSize[0], limits.maxComputeWorkGroupInvocations, 256u});
  caps.workgroup_bytes = std::min(limits.maxComputeSharedMemorySize, 32u * 1024);
  const VkSubgroupFeatureFlags want = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  const bool subgroups = (abilities.subgroup.supportedOperations & want) == want &&
                         (abilities.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  const auto size = static_cast<uint16_t>(abilities.subgroup.subgroupSize);
  caps.lanes = std::clamp<uint32_t>(size, 4, 32);
  caps.subgroup = subgroups ? SubgroupCaps{size, size, false} : SubgroupCaps{1, 1, false};
  caps.dot4 = abilities.fast_dot ? Dot4::fast : Dot4::none;
  caps.dot4_code_bits = 8;
  caps.f16_storage = abilities.storage16;
  caps.byte_storage = abilities.storage8;
  caps.fma = false;  // Vulkan promises no single rounding
  caps.i64 = abilities.int64;
  caps.f64 = abilities.float64;
  caps.host_visible = false;
  caps.max_binding_bytes = limits.maxStorageBufferRange / 4 * 4;
  caps.max_bindings = std::min({limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers,
                                limits.maxPerStageResources, 64u});
  caps.offset_alignment = static_cast<uint32_t>(
      std::max<uint64_t>({64, limits.minStorageBufferOffsetAlignment, limits.minTexelBufferOffsetAlignment}));
  caps.max_groups = limits.maxComputeWorkGroupCount[0];
  caps.memory_limit = memory;
  caps.launch_s = 5e-6;
  return caps;
}

Result<std::shared_ptr<Context>> open_context(const Driver& vk, VkPhysicalDevice device, const Abilities& abilities) {
  const VkPhysicalDeviceLimits& limits = abilities.properties.limits;
  if (abilities.properties.apiVersion < VK_API_VERSION_1_1)
    return make_error(Code::unsupported, "the Vulkan device '" + std::string(abilities.properties.deviceName) +
                                             "' is of Vulkan 1.0; tern takes 1.1 and later: install a newer driver");
  auto context = std::make_shared<Context>(vk);
  context->physical = device;
  context->most_groups = limits.maxComputeWorkGroupCount[0];
  context->most_binding = limits.maxStorageBufferRange;
  context->offset_alignment =
      std::max<uint64_t>({1, limits.minStorageBufferOffsetAlignment, limits.minTexelBufferOffsetAlignment});
  TERN_TRY(context->family, compute_family(vk, device));
  Chain chain(vk, device, abilities.properties.apiVersion);
  chain.features.features = {};
  chain.features.features.robustBufferAccess = abilities.texels ? VK_TRUE : VK_FALSE;  // emit/kernel_spirv.h
  chain.features.features.shaderInt64 = abilities.int64 ? VK_TRUE : VK_FALSE;
  chain.features.features.shaderFloat64 = abilities.float64 ? VK_TRUE : VK_FALSE;
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = context->family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &chain.features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(chain.extensions.size());
  info.ppEnabledExtensionNames = chain.extensions.data();
  TERN_OK(checked(vk.CreateDevice(device, &info, nullptr, &context->device), "opening the device"));
  vk.GetDeviceQueue(context->device, context->family, 0, &context->queue);
  return context;
}

}  // namespace tern::vulkan
