// Where pulled models are kept, and how their names stand for paths.
#pragma once

#include <memory>
#include <string>

#include "tern/import/model_file.h"

namespace tern::tool {

// tern/models in $XDG_CACHE_HOME or ~/.cache; empty where neither is set.
std::string cache_folder();
// The path as given where something is there, else the pulled model of that name (".gguf" may be left away), else as
// given.
std::string model_path(const std::string& given);
// open_model_file of that path.
Result<std::unique_ptr<ModelFile>> open_named_model(const std::string& given);

}  // namespace tern::tool
