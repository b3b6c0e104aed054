#include "engine/registry.h"

#include <charconv>

#include "backends/cpu/device.h"
#include "backends/mean/device.h"
#include "backends/opencl/device.h"
#include "backends/vulkan/device.h"
#include "base/cache/disk_cache.h"
#include "base/cpu.h"
#include "base/platform/within_memory.h"

namespace tern::engine {
namespace {

std::vector<DeviceInfo> describe_cpu() {
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
  return {info};
}
Result<std::shared_ptr<hal::Device>> open_cpu(unsigned index, const DeviceOptions& options) {
  if (index > 0) return make_error(Code::not_found, "there is one cpu; its cores are its workers");
  TERN_TRY(std::unique_ptr<hal::Device> device, cpu::open_cpu({options.threads, options.isa}));
  return std::shared_ptr<hal::Device>(std::move(device));
}

std::vector<DeviceInfo> describe_mean() {
  const mean_device::MeanOptions options;
  DeviceInfo info;
  info.spec = "mean";
  info.description = "the cpu behind the limits of the poorest GPU interfaces, for tests";
  info.available = true;
  info.workers = options.threads;
  info.memory_total = info.memory_available = options.memory_limit;
  return {info};
}
Result<std::shared_ptr<hal::Device>> open_mean(unsigned index, const DeviceOptions& options) {
  if (index > 0) return make_error(Code::not_found, "there is one mean device");
  mean_device::MeanOptions mean;
  if (options.threads != 0) mean.threads = options.threads;
  if (!options.isa.empty()) return make_error(Code::invalid, "the mean device takes no instruction set");
  TERN_TRY(std::unique_ptr<hal::Device> device, mean_device::open_mean(mean));
  return std::shared_ptr<hal::Device>(std::move(device));
}

// Devices behind a driver: a line each, or one that says why there is none.
std::vector<DeviceInfo> describe_all(const std::string& backend, const Result<std::vector<hal::Description>>& all) {
  DeviceInfo info;
  info.spec = backend;
  if (!all) {
    info.reason = all.error().message();
    return {info};
  }
  std::vector<DeviceInfo> out;
  for (const hal::Description& d : *all) {
    info.spec = backend + ":" + std::to_string(out.size());
    info.description = d.text;
    info.available = true;
    info.workers = d.workers;
    info.memory_total = info.memory_available = d.memory;
    out.push_back(info);
  }
  return out;
}
// `open`: of an index, a form and a cache folder.
template <class Open>
Result<std::shared_ptr<hal::Device>> open_driven(std::string_view backend, unsigned index, const DeviceOptions& options,
                                                 Open open) {
  if (options.threads != 0)
    return make_error(Code::invalid, "the threads of a device of " + std::string(backend) + " are its driver's matter");
  const std::string cache = options.cache_dir == "none" ? ""
                            : options.cache_dir.empty() ? user_cache_dir(backend)
                                                        : options.cache_dir;
  TERN_TRY(std::unique_ptr<hal::Device> device, open({index, options.isa, cache}));
  return std::shared_ptr<hal::Device>(std::move(device));
}

std::vector<DeviceInfo> describe_opencl() { return describe_all("opencl", opencl::list_devices()); }
Result<std::shared_ptr<hal::Device>> open_opencl(unsigned index, const DeviceOptions& options) {
  return open_driven("opencl", index, options, opencl::open_opencl);
}
std::vector<DeviceInfo> describe_vulkan() { return describe_all("vulkan", vulkan::list_devices()); }
Result<std::shared_ptr<hal::Device>> open_vulkan(unsigned index, const DeviceOptions& options) {
  return open_driven("vulkan", index, options, vulkan::open_vulkan);
}

constexpr Backend kBackends[] = {{"cpu", describe_cpu, open_cpu},
                                 {"mean", describe_mean, open_mean},
                                 {"opencl", describe_opencl, open_opencl},
                                 {"vulkan", describe_vulkan, open_vulkan}};

}  // namespace

std::span<const Backend> backends() { return kBackends; }
std::span<const std::string_view> pack_levels() { return cpu::pack_levels(); }
std::string host_isa() { return cpu::detect_caps({}).isa; }

}  // namespace tern::engine

namespace tern {

namespace {

// A backend and a number of it: "cpu", "opencl:1"; without a number the first.
struct Named {
  const engine::Backend* backend;
  unsigned index = 0;
};
Result<Named> backend_named(std::string_view spec) {
  std::string known;
  const size_t colon = std::min(spec.find(':'), spec.size());
  for (const engine::Backend& backend : engine::backends()) {
    known += (known.empty() ? "" : ", ") + std::string(backend.name);
    if (backend.name != spec.substr(0, colon)) continue;
    Named named{&backend, 0};
    if (colon == spec.size()) return named;
    const std::string_view digits = spec.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), named.index);
    if (error == std::errc() && end == digits.data() + digits.size()) return named;
    return make_error(Code::not_found, "there is no device '" + std::string(spec) +
                                           "': devices of one kind have numbers, '" + std::string(backend.name) +
                                           ":0'");
  }
  return make_error(Code::not_found, "there is no device '" + std::string(spec) + "' in this build; it has: " + known);
}

}  // namespace

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> out;
  for (const engine::Backend& backend : engine::backends()) {
    for (DeviceInfo& info : backend.describe()) out.push_back(std::move(info));
  }
  return out;
}

Result<DeviceInfo> describe_device(std::string_view spec) {
  TERN_TRY(const Named named, backend_named(spec));
  std::vector<DeviceInfo> all = named.backend->describe();
  // A kind that is not there says why in its one line.
  if (named.index == 0 || (all.size() == 1 && !all[0].available)) return std::move(all[0]);
  if (named.index < all.size()) return std::move(all[named.index]);
  return make_error(Code::not_found, "there is no device '" + std::string(spec) + "'; of its kind there are " +
                                         std::to_string(all.size()));
}

Result<Device> open_device(std::string_view spec, const DeviceOptions& options) try {
  TERN_TRY(const Named named, backend_named(spec));
  TERN_TRY(std::shared_ptr<hal::Device> device, named.backend->open(named.index, options));
  return Device(std::move(device));
} catch (const std::bad_alloc&) {
  return memory_ended();
}

DeviceMemory Device::memory() const {
  const hal::MemoryInfo info = impl_->memory();
  return {info.total, info.available};
}

}  // namespace tern
