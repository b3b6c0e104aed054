// The library that finds an interface's drivers, opened at run time.
#pragma once

#include <string>

#include "tern/result.h"

namespace tern::hal {

// `interface`: in words, "Vulkan"; `cure`: what brings the library and a driver. It stays open. Code::not_found.
Result<void*> open_driver_library(const char* file, const std::string& interface, const std::string& cure);

// Code::not_found where the interface has no such device.
Status check_index(size_t index, size_t count, const std::string& interface);

}  // namespace tern::hal
