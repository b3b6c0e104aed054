#include "engine/registry.h"

#include "backends/cpu/device.h"
#include "backends/mean/device.h"
#include "base/cpu.h"
#include "base/platform/within_memory.h"

namespace tern::engine {
namespace {

DeviceInfo describe_cpu() {
  DeviceInfo info;
  info.spec = "cpu";
  const Caps caps = cpu::detect_caps({});
  info.description = cpu_model() + ", " + caps.isa;
  info.workers = caps.workers;
  if (const auto device = cpu::open_cpu({1, {}})) {
    const hal::MemoryInfo memory = (*device)->memory();
    info.available = true;
    info.memory_total = memory.total;
    info.memory_available = memory.available;
  } else {
    info.reason = device.error().message();
  }
  return info;
}
Result<std::shared_ptr<hal::Device>> open_cpu(const DeviceOptions& options) {
  TERN_TRY(std::unique_ptr<hal::Device> device, cpu::open_cpu({options.threads, options.isa}));
  return std::shared_ptr<hal::Device>(std::move(device));
}

DeviceInfo describe_mean() {
  const mean_device::MeanOptions options;
  DeviceInfo info;
  info.spec = "mean";
  info.description = "the cpu behind the limits of the poorest GPU interfaces, for tests";
  info.available = true;
  info.workers = options.threads;
  info.memory_total = info.memory_available = options.memory_limit;
  return info;
}
Result<std::shared_ptr<hal::Device>> open_mean(const DeviceOptions& options) {
  mean_device::MeanOptions mean;
  if (options.threads != 0) mean.threads = options.threads;
  if (!options.isa.empty()) return make_error(Code::invalid, "the mean device takes no instruction set");
  TERN_TRY(std::unique_ptr<hal::Device> device, mean_device::open_mean(mean));
  return std::shared_ptr<hal::Device>(std::move(device));
}

constexpr Backend kBackends[] = {{"cpu", describe_cpu, open_cpu}, {"mean", describe_mean, open_mean}};

}  // namespace

std::span<const Backend> backends() { return kBackends; }
std::span<const std::string_view> pack_levels() { return cpu::pack_levels(); }
std::string host_isa() { return cpu::detect_caps({}).isa; }

}  // namespace tern::engine

namespace tern {

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> out;
  for (const engine::Backend& backend : engine::backends()) out.push_back(backend.describe());
  return out;
}

Result<Device> open_device(std::string_view spec, const DeviceOptions& options) try {
  std::string known;
  for (const engine::Backend& backend : engine::backends()) {
    if (backend.name == spec) {
      TERN_TRY(std::shared_ptr<hal::Device> device, backend.open(options));
      return Device(std::move(device));
    }
    known += (known.empty() ? "" : ", ") + std::string(backend.name);
  }
  return make_error(Code::not_found, "there is no device '" + std::string(spec) + "' in this build; it has: " + known);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

DeviceMemory Device::memory() const {
  const hal::MemoryInfo info = impl_->memory();
  return {info.total, info.available};
}

}  // namespace tern
