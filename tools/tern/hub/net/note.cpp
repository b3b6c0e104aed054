#include "tools/tern/hub/net/note.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/platform/replace_file.h"
#include "tools/tern/common/json.h"

namespace tern::tool {

Note read_note(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  const Json json = Json::parse(text.str(), nullptr, false);
  Note note;
  if (!json.is_object()) return note;
  const auto field = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  note.url = field("url");
  note.etag = field("etag");
  note.sha256 = field("sha256");
  if (json.contains("bytes") && json["bytes"].is_number_unsigned()) note.bytes = json["bytes"];
  return note;
}

Status write_note(const std::string& path, const Note& note) {
  const Json json = {{"url", note.url}, {"etag", note.etag}, {"sha256", note.sha256}, {"bytes", note.bytes}};
  return replace_file(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace tern::tool
