// The backends of this build, by name. The only place that names them.
#pragma once

#include <span>

#include "tern/device.h"

namespace tern::engine {

struct Backend {
  std::string_view name;
  DeviceInfo (*describe)();
  Result<std::shared_ptr<hal::Device>> (*open)(const DeviceOptions& options);
};

std::span<const Backend> backends();

}  // namespace tern::engine
