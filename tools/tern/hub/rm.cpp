// tern rm: removes models that were pulled, whole or not.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tools/tern/common/cache.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"
#include "tools/tern/hub/net/note.h"
#include "tools/tern/hub/reference.h"

namespace tern::tool {
namespace {

namespace fs = std::filesystem;

struct RmFlags {
  std::vector<std::string> names;
  std::string folder;
  bool json = false;
};

// The files of a name that are there: of a split model all parts.
Result<std::vector<fs::path>> files_of(const std::string& folder, const std::string& name) {
  TERN_OK(check_file_name(name));
  std::vector<fs::path> out;
  for (const std::string& part : parts_of(name)) {
    for (const char* ending : {"", ".json", ".part", ".part.json"}) {
      std::error_code ignored;
      const fs::path path = fs::path(folder) / (part + ending);
      if (fs::is_regular_file(path, ignored)) out.push_back(path);
    }
  }
  if (out.empty())
    return make_error(Code::not_found, "there is no model '" + printable(name) + "' in " + printable(folder, 1000));
  return out;
}

int rm(const RmFlags& flags) {
  const std::string folder = flags.folder.empty() ? cache_folder() : flags.folder;
  if (folder.empty()) return wrong_use("neither XDG_CACHE_HOME nor HOME says where models are kept; give --dir");
  std::vector<fs::path> all;
  for (const std::string& name : flags.names) {  // all names are looked at before anything is removed
    const auto files = files_of(folder, name);
    if (!files) return fail(files.error());
    all.insert(all.end(), files->begin(), files->end());
  }
  uint64_t bytes = 0;
  Json removed = Json::array();
  for (const fs::path& path : all) {
    std::error_code error;
    const uint64_t size = fs::file_size(path, error);
    if (!fs::remove(path, error) && error)
      return fail(
          make_error(Code::io, "'" + printable(path.string(), 1000) + "' cannot be removed: " + error.message()));
    bytes += size;
    removed.push_back(path.string());
  }
  if (flags.json) {
    print_json({{"removed", std::move(removed)}, {"bytes", bytes}});
  } else {
    std::printf("%s are free again\n", human_bytes(static_cast<double>(bytes)).c_str());
  }
  return kFine;
}

}  // namespace

Action add_rm(CommandLine& line) {
  auto flags = std::make_shared<RmFlags>();
  line.option("names", flags->names, "Names, as `tern list` tells them").required();
  line.option("--dir", flags->folder, "Folder of the models; by default $XDG_CACHE_HOME/tern/models");
  line.flag("--json", flags->json, "{\"removed\": [paths], \"bytes\"}");
  line.footer("Examples:\n  tern rm model.gguf\n  tern rm one.gguf other.gguf");
  return [flags] { return rm(*flags); };
}

}  // namespace tern::tool
