#include "backends/opencl/driver.h"

#include <dlfcn.h>

#include "hal/driver_library.h"

namespace tern::opencl {
namespace {

constexpr const char* kCure =
    "install ocl-icd-libopencl1 and a driver (pocl-opencl-icd for processors, the vendor's for a GPU)";

Result<const Driver*> open_driver() {
  static Driver table{};
  TERN_TRY(void* const library, hal::open_driver_library("libOpenCL.so.1", "OpenCL", kCure));
#define TERN_CL_ENTRY(name)                                                        \
  table.name = reinterpret_cast<decltype(table.name)>(dlsym(library, "cl" #name)); \
  if (table.name == nullptr) return make_error(Code::unsupported, "libOpenCL.so.1 has no cl" #name ", of OpenCL 1.2");
#include "backends/opencl/entries.inc"
#undef TERN_CL_ENTRY
  return &table;
}

}  // namespace

Result<const Driver*> driver() {
  static const Result<const Driver*> opened = open_driver();
  if (!opened) return opened.error();
  return *opened;
}

Result<std::vector<Found>> find_devices(const Driver& cl) {
  std::vector<Found> out;
  cl_uint count = 0;
  const cl_int code = cl.GetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(code == CL_SUCCESS ? count : 0);
  if (!platforms.empty()) cl.GetPlatformIDs(count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    cl_uint n = 0;
    if (cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &n) != CL_SUCCESS) continue;
    std::vector<cl_device_id> devices(n);
    if (n > 0) cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, devices.data(), nullptr);
    for (cl_device_id device : devices) out.push_back({platform, device});
  }
  if (out.empty()) return make_error(Code::not_found, "the OpenCL library knows no device; " + std::string(kCure));
  return out;
}

std::string device_text(const Driver& cl, cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  if (cl.GetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  cl.GetDeviceInfo(device, what, bytes, text.data(), nullptr);
  text.resize(text.find('\0') == std::string::npos ? bytes : text.find('\0'));
  return text;
}

Error failure(cl_int code, std::string_view doing) {
  const std::string what = "OpenCL, " + std::string(doing) + ": ";
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY: return make_error(Code::out_of_memory, what + "out of memory");
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_INVALID_COMMAND_QUEUE:
    case CL_OUT_OF_RESOURCES:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
      return make_error(Code::device_lost,
                        what + "the device was lost or ran out of resources (code " + std::to_string(code) + ")");
    case CL_INVALID_BUFFER_SIZE:
    case CL_INVALID_WORK_GROUP_SIZE:
      return make_error(Code::limit, what + "a limit of the device was passed (code " + std::to_string(code) + ")");
    default: return make_error(Code::internal, what + "the driver answers " + std::to_string(code));
  }
}

}  // namespace tern::opencl
