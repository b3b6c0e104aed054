#include "tools/tern/hub/net/note.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/utf8.h"
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
  const std::string fresh = path + ".new";
  {
    std::ofstream out(fresh);
    out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    if (!out.flush())
      return make_error(Code::io, "'" + printable(fresh, 1000) + "' cannot be written: " + std::strerror(errno));
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0)
    return make_error(Code::io, "'" + printable(path, 1000) + "' cannot be written: " + std::strerror(errno));
  return ok();
}

}  // namespace tern::tool
