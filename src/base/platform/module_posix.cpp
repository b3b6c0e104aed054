#include <dlfcn.h>

#include <filesystem>

#include "base/platform/module.h"

namespace tern {

std::string module_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&module_folder), &info) || !info.dli_fname) return {};
  std::string path = info.dli_fname;
  // A program found by PATH is known to the loader by its bare name.
  if (path.find('/') == std::string::npos) {
    std::error_code failed;
    path = std::filesystem::read_symlink("/proc/self/exe", failed).string();
    if (failed) return {};
  }
  return path.substr(0, path.rfind('/'));
}

}  // namespace tern
