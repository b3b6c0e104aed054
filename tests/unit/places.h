// Whether a device that tests name is there.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "tern/device.h"
#include "unit/sanitized.h"

namespace tern::test {

inline constexpr const char *kOpencl = "opencl:0", *kVulkan = "vulkan:0";

// TERN_TEST_REQUIRE names what must be there: a test without it fails instead of being skipped.
inline bool promised(std::string_view backend) {
  const char* text = std::getenv("TERN_TEST_REQUIRE");
  return text != nullptr && std::string_view(text).find(backend) != std::string_view::npos;
}

// Whether a device is behind a driver of its own.
inline bool driven(std::string_view device) { return device.starts_with("opencl") || device.starts_with("vulkan"); }

// Why a test of this device is skipped; empty: it is not.
inline std::string why_not(std::string_view device) {
  if (!driven(device)) return {};
  if (kSanitized) return "drivers are not made for sanitizers";
  if (promised(device.substr(0, device.find(':')))) return {};
  const auto found = describe_device(device);
  if (!found) return found.error().message();
  return found->available ? std::string() : found->reason;
}

}  // namespace tern::test
