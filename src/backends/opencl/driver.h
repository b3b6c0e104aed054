// The OpenCL driver: opened at run time, its entries as a table.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tern/result.h"

namespace tern::opencl {

struct Driver {
#define TERN_CL_ENTRY(name) decltype(&::cl##name) name;
#include "backends/opencl/entries.inc"
#undef TERN_CL_ENTRY
};

// libOpenCL.so.1, opened once and never closed: drivers leave threads behind. Code::not_found with what would bring it.
Result<const Driver*> driver();

struct Found {
  cl_platform_id platform;
  cl_device_id device;
};
// Every device of every platform, in the order in which the driver names them. Code::not_found where there is none.
Result<std::vector<Found>> find_devices(const Driver& cl);

std::string device_text(const Driver& cl, cl_device_id device, cl_device_info what);
template <class T>
T device_number(const Driver& cl, cl_device_id device, cl_device_info what) {
  T value{};
  cl.GetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

// What a code of the driver means here; `doing`: "allocating a buffer".
Error failure(cl_int code, std::string_view doing);
inline Status checked(cl_int code, std::string_view doing) {
  if (code == CL_SUCCESS) return ok();
  return failure(code, doing);
}

// An object of the driver, released with it.
template <class T>
class Owned {
 public:
  using Release = cl_int(CL_API_CALL*)(T);
  Owned() = default;
  Owned(T object, Release release) : object_(object), release_(release) {}
  Owned(Owned&& o) noexcept : object_(std::exchange(o.object_, nullptr)), release_(o.release_) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(object_, o.object_), std::swap(release_, o.release_);
    return *this;
  }
  ~Owned() {
    if (object_ != nullptr) release_(object_);
  }
  T get() const { return object_; }

 private:
  T object_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace tern::opencl
