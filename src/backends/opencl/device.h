// OpenCL devices: processors and GPUs whose driver takes OpenCL C 1.2.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hal/described.h"
#include "hal/device.h"

namespace tern::opencl {

// In the order of their numbers. Code::not_found, with what would bring one.
Result<std::vector<hal::Description>> list_devices();

struct OpenclOptions {
  unsigned index = 0;
  // "vectors": a workgroup is one vector, for processors; "lanes": a work-item a lane. Empty: what suits the device.
  std::string form;
  std::string cache_dir;  // of compiled programs; empty: none
};
// Thread-safe, as its queues are not.
Result<std::unique_ptr<hal::Device>> open_opencl(const OpenclOptions& options);

}  // namespace tern::opencl
