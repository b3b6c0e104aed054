#include "hal/driver_library.h"

#include <dlfcn.h>

namespace tern::hal {

Result<void*> open_driver_library(const char* file, const std::string& interface, const std::string& cure) {
  if (void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
  const char* why = dlerror();
  return make_error(Code::not_found,
                    "the " + interface + " library could not be opened (" + (why ? why : file) + "); " + cure);
}

Status check_index(size_t index, size_t count, const std::string& interface) {
  if (index < count) return ok();
  return make_error(Code::not_found, "there is no " + interface + " device " + std::to_string(index) +
                                         "; the drivers have " + std::to_string(count));
}

}  // namespace tern::hal
