// Devices: what is there, and opening one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tern/result.h"

namespace tern {

namespace hal {
struct Device;
}

struct DeviceInfo {
  std::string spec;         // what open_device takes: "cpu", "mean", "opencl:0", "vulkan:0"
  std::string description;  // processor or card, instruction set
  bool available = false;
  std::string reason;  // where not available: why, and what would bring it
  unsigned workers = 0;
  uint64_t memory_total = 0, memory_available = 0;  // bytes
};

struct DeviceOptions {
  unsigned threads = 0;  // cpu: 0 means the physical cores that affinity and cgroup allow
  // For tests and comparisons. cpu: a lower instruction set, "x86-64-v3", "x86-64-v2". opencl: the form of kernels,
  // "vectors" (a workgroup is one vector; usual for processors) or "lanes" (a work-item is a lane). vulkan: "staged"
  // (the host does not see buffers, also where it could).
  std::string isa;
  std::string cache_dir;  // opencl, vulkan: of what the driver compiled; empty: the user's cache folder; "none":
                          // nothing is kept
};

// Every device of every backend of this build, with the reason where one is not there.
std::vector<DeviceInfo> list_devices();
// One of them, without a look at other backends: some drivers take a second to open. Code::not_found.
Result<DeviceInfo> describe_device(std::string_view spec);

struct DeviceMemory {
  uint64_t total = 0, available = 0;  // bytes
};

// A handle; copies share the device. Thread-safe.
class Device {
 public:
  explicit Device(std::shared_ptr<hal::Device> impl) : impl_(std::move(impl)) {}
  // What this process could still take now, within its cgroup's limits where the device is the host.
  DeviceMemory memory() const;
  hal::Device& impl() const { return *impl_; }
  const std::shared_ptr<hal::Device>& shared() const { return impl_; }

 private:
  std::shared_ptr<hal::Device> impl_;
};

// spec: "cpu" (default), "mean" (the CPU behind the caps of the poorest interfaces, for tests), "opencl:0", "opencl:1"
// …, "vulkan:0" …
Result<Device> open_device(std::string_view spec = "cpu", const DeviceOptions& options = {});

}  // namespace tern
