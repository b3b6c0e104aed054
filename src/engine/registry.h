// The backends of this build, by name. The only place that names them.
#pragma once

#include <span>

#include "tern/device.h"

namespace tern::engine {

struct Backend {
  std::string_view name;
  std::vector<DeviceInfo> (*describe)();  // never empty: where there is none, one that says why
  Result<std::shared_ptr<hal::Device>> (*open)(unsigned index, const DeviceOptions& options);
};

std::span<const Backend> backends();

// The instruction sets that packs of kernels are made for, and this processor's.
std::span<const std::string_view> pack_levels();
std::string host_isa();

}  // namespace tern::engine
