#include "tools/tern/common/cache.h"

#include <cstdlib>
#include <filesystem>

namespace tern::tool {

std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/tern/models";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/tern/models" : std::string();
}

std::string model_path(const std::string& given) {
  std::error_code ignored;
  const std::string folder = cache_folder();
  if (given.empty() || given.find('/') != std::string::npos || folder.empty()) return given;
  if (std::filesystem::exists(given, ignored)) return given;
  for (const char* ending : {"", ".gguf"}) {
    const std::string path = folder + "/" + given + ending;
    if (std::filesystem::is_regular_file(path, ignored)) return path;
  }
  return given;
}

Result<std::unique_ptr<ModelFile>> open_named_model(const std::string& given) {
  return open_model_file(model_path(given));
}

}  // namespace tern::tool
