// tern list: the models that were pulled.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tern/import/model_file.h"
#include "tools/tern/common/cache.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"
#include "tools/tern/hub/net/note.h"

namespace tern::tool {
namespace {

namespace fs = std::filesystem;

struct ListFlags {
  std::string folder;
  bool json = false;
};

struct Entry {
  std::string name, architecture, url, sha256;  // architecture: empty where the file cannot be read
  uint64_t bytes = 0;
  bool whole = true;
};

Result<std::vector<Entry>> entries(const std::string& folder) {
  std::vector<Entry> out;
  std::error_code error;
  if (!fs::exists(folder, error)) return out;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    Entry entry;
    entry.whole = name.ends_with(".gguf");
    if (!entry.whole && !name.ends_with(".gguf.part")) continue;
    const Note note = read_note(note_of(it->path().string()));
    entry.name = entry.whole ? name : name.substr(0, name.size() - 5);
    entry.url = note.url;
    entry.sha256 = note.sha256;
    entry.bytes = it->file_size(ignored);
    if (entry.whole) {
      if (const auto file = open_model_file(it->path().string())) {
        if (const auto architecture = (*file)->metadata().string("general.architecture"))
          entry.architecture = *architecture;
      }
    }
    out.push_back(std::move(entry));
  }
  if (error) return make_error(Code::io, "'" + printable(folder, 1000) + "' cannot be read: " + error.message());
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return out;
}

int list(const ListFlags& flags) {
  const std::string folder = flags.folder.empty() ? cache_folder() : flags.folder;
  if (folder.empty()) return wrong_use("neither XDG_CACHE_HOME nor HOME says where models are kept; give --dir");
  const auto all = entries(folder);
  if (!all) return fail(all.error());
  Json models = Json::array();
  for (const Entry& e : *all) {
    models.push_back({{"name", e.name},
                      {"path", (fs::path(folder) / (e.whole ? e.name : e.name + ".part")).string()},
                      {"bytes", e.bytes},
                      {"whole", e.whole},
                      {"architecture", nullptr},
                      {"url", nullptr},
                      {"sha256", nullptr}});
    const auto set = [&](const char* key, const std::string& value) {
      if (!value.empty()) models.back()[key] = value;
    };
    set("architecture", e.architecture);
    set("url", e.url);
    set("sha256", e.sha256);
    if (!flags.json)
      std::printf("%-56s %10s  %s\n", printable(e.name, 300).c_str(), human_bytes(static_cast<double>(e.bytes)).c_str(),
                  e.whole ? printable(e.architecture).c_str() : "not whole yet; `tern pull` goes on");
  }
  if (flags.json) print_json({{"folder", folder}, {"models", std::move(models)}});
  return kFine;
}

}  // namespace

Action add_list(CommandLine& line) {
  auto flags = std::make_shared<ListFlags>();
  line.option("--dir", flags->folder, "Folder of the models; by default $XDG_CACHE_HOME/tern/models");
  line.flag("--json", flags->json, "{\"folder\", \"models\": [{\"name\", \"path\", \"bytes\", \"whole\", ...}]}");
  line.footer("Examples:\n  tern list\n  tern list --json");
  return [flags] { return list(*flags); };
}

}  // namespace tern::tool
