#include "backends/vulkan/device.h"

#include "backends/vulkan/commands.h"
#include "base/version.h"
#include "hal/driver_library.h"
#include "hal/waited_queue.h"

namespace tern::vulkan {
namespace {

struct Work {
  Transfers transfers;
  static Status run(hal::Commands& commands, const hal::Binding& binding, const hal::SubmitOptions& options) {
    return static_cast<VulkanCommands&>(commands).run(binding, options);
  }
  Status upload(std::span<const std::byte> from, hal::Buffer& to, uint64_t at) {
    return transfers.upload(from, to, at);
  }
  Status download(const hal::Buffer& from, uint64_t at, std::span<std::byte> to) {
    return transfers.download(from, at, to);
  }
  Status copy(const hal::Buffer& from, uint64_t from_at, hal::Buffer& to, uint64_t to_at, uint64_t bytes) {
    return transfers.copy(from, from_at, to, to_at, bytes);
  }
};

class VulkanDevice final : public hal::Device {
 public:
  VulkanDevice(Caps caps, const std::shared_ptr<Context>& context, bool staged, const std::string& identity,
               const std::string& cache_dir)
      : caps_(std::move(caps)),
        context_(context),
        memory_(std::make_shared<Memory>(context, staged)),
        programs_(context, identity, DiskCache(cache_dir)) {}

  const Caps& caps() const override { return caps_; }
  hal::MemoryInfo memory() const override { return memory_->info(); }
  std::span<const Candidate> native() const override { return {}; }
  std::span<const StepFuser> fusers() const override { return {}; }

  Result<std::unique_ptr<hal::Buffer>> allocate(uint64_t bytes, hal::MemoryKind) override {
    TERN_TRY(auto buffer, memory_->allocate(bytes));
    return std::unique_ptr<hal::Buffer>(std::move(buffer));
  }
  Result<std::shared_ptr<hal::Kernel>> load(const Program& program, const KernelDef& def) override {
    return programs_.load(program, def);
  }
  Result<std::unique_ptr<hal::Commands>> record(const Program& program, uint32_t list,
                                                std::span<const std::shared_ptr<hal::Kernel>> kernels) override {
    TERN_TRY(auto commands, VulkanCommands::record(context_, program, list, kernels));
    return std::unique_ptr<hal::Commands>(std::move(commands));
  }
  Result<std::unique_ptr<hal::Queue>> queue() override {
    TERN_TRY(Transfers transfers, Transfers::open(context_, memory_));
    return hal::WaitedQueue<Work>::open({std::move(transfers)});
  }

 private:
  Caps caps_;
  std::shared_ptr<Context> context_;
  std::shared_ptr<Memory> memory_;
  Programs programs_;
};

std::string version_text(uint32_t v) {
  return std::to_string(VK_API_VERSION_MAJOR(v)) + "." + std::to_string(VK_API_VERSION_MINOR(v));
}

}  // namespace

Result<std::vector<hal::Description>> list_devices() {
  TERN_TRY(const Driver* vk, driver());
  TERN_TRY(const std::vector<VkPhysicalDevice> all, find_devices(*vk));
  std::vector<hal::Description> out;
  for (const VkPhysicalDevice device : all) {
    const Abilities abilities = abilities_of(*vk, device);
    const uint64_t memory = heap_bytes(*vk, device);
    out.push_back({std::string(abilities.properties.deviceName) + ", Vulkan " +
                       version_text(abilities.properties.apiVersion) + ", " + abilities.driver,
                   caps_of(abilities, memory).workers, memory});
  }
  return out;
}

Result<std::unique_ptr<hal::Device>> open_vulkan(const VulkanOptions& options) {
  TERN_TRY(const Driver* vk, driver());
  TERN_TRY(const std::vector<VkPhysicalDevice> all, find_devices(*vk));
  TERN_OK(hal::check_index(options.index, all.size(), "Vulkan"));
  if (!options.form.empty() && options.form != "staged")
    return make_error(Code::invalid,
                      "a Vulkan device has its buffers as it likes or 'staged', not '" + options.form + "'");
  const VkPhysicalDevice physical = all[options.index];
  const Abilities abilities = abilities_of(*vk, physical);
  TERN_TRY(auto context, open_context(*vk, physical, abilities));
  Caps caps = caps_of(abilities, heap_bytes(*vk, physical));
  const std::string identity = std::string(version()) + ", " + caps.isa + ", " +
                               std::to_string(abilities.properties.driverVersion) + ", " +
                               std::to_string(abilities.properties.deviceID);
  return std::unique_ptr<hal::Device>(
      std::make_unique<VulkanDevice>(std::move(caps), context, !options.form.empty(), identity, options.cache_dir));
}

}  // namespace tern::vulkan
