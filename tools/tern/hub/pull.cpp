// tern pull: a model file by its address or by its name on a hub, into the folder where verbs look for names.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/tern/common/cache.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"
#include "tools/tern/hub/net/fetch.h"
#include "tools/tern/hub/reference.h"

namespace tern::tool {
namespace {

struct PullFlags {
  std::string reference, folder, name, sha256;
  HubOptions hub;
  unsigned retries = 5;
  bool json = false;
};

Result<std::vector<Fetched>> pull_all(const PullFlags& flags) {
  FetchOptions options;
  options.folder = flags.folder.empty() ? cache_folder() : flags.folder;
  options.sha256 = flags.sha256;
  options.retries = flags.retries;
  if (options.folder.empty())
    return make_error(Code::invalid, "neither XDG_CACHE_HOME nor HOME says where models are kept; give --dir");
  if (!flags.name.empty()) TERN_OK(check_file_name(flags.name));
  TERN_TRY(std::vector<Wanted> all, resolve_reference(flags.reference, flags.hub));
  if (all.size() > 1 && !(flags.name.empty() && flags.sha256.empty()))
    return make_error(Code::invalid, "this model is split into " + std::to_string(all.size()) +
                                         " files; --name and --sha256 are for one");
  if (!flags.name.empty()) all[0].name = flags.name;
  std::vector<Fetched> out;
  for (const Wanted& file : all) {
    TERN_OK(check_file_name(file.name));
    ProgressLine line(file.name + (all.size() > 1 ? " of " + std::to_string(all.size()) : ""));
    options.url = file.url;
    options.name = file.name;
    options.progress = [&line](uint64_t done, uint64_t total) { line.update(done, total); };
    TERN_TRY(Fetched fetched, fetch(options));
    out.push_back(std::move(fetched));
  }
  return out;
}

int pull(const PullFlags& flags) {
  const auto files = pull_all(flags);
  if (!files) return fail(files.error());
  Json list = Json::array();
  for (const Fetched& f : *files) {
    list.push_back({{"path", f.path},
                    {"bytes", f.bytes},
                    {"sha256", f.sha256},
                    {"checked", f.checked},
                    {"was_there", f.was_there},
                    {"resumed_from", f.resumed_from}});
    if (!flags.json) std::printf("%s\n", f.path.c_str());
  }
  if (flags.json) print_json({{"files", std::move(list)}});
  return kFine;
}

}  // namespace

Action add_pull(CommandLine& line) {
  auto flags = std::make_shared<PullFlags>();
  line.option("model", flags->reference, "URL, hf:OWNER/NAME/FILE or OWNER/NAME[:QUANT]").required();
  line.option("--hub", flags->hub.hub, "Address of the hub").shows_default();
  line.option("--revision", flags->hub.revision, "Branch, tag or commit on the hub").shows_default();
  line.option("--sha256", flags->sha256,
              "What the file's SHA-256 must be; by default what the hub says, where it says one (X-Linked-Etag)");
  line.option("--name", flags->name, "Name of the file here; by default as there");
  line.option("--dir", flags->folder, "Folder of the file; by default $XDG_CACHE_HOME/tern/models");
  line.option("--retries", flags->retries, "Attempts without any progress before giving up")
      .shows_default()
      .between(0, 1000u);
  line.flag("--json", flags->json, "One JSON object: path, bytes, sha256 of each file");
  line.footer(
      "Prints the path. What was begun goes on where it was left, also in a later call; a file has its name only when "
      "it is whole and its checksum holds. Without QUANT the usual ones are looked for, beginning with Q4_K_M, as far "
      "as this build runs them. Verbs take the name of a pulled file in place of a path.\n\n"
      "Examples:\n  tern pull OWNER/NAME:Q4_0\n  tern pull hf:OWNER/NAME/file.gguf --revision v1\n"
      "  tern pull https://example.org/model.gguf --sha256 ... && tern run model.gguf -p Hello");
  return [flags] { return pull(*flags); };
}

}  // namespace tern::tool
