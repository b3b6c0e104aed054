// What is known of a fetched file, beside it: NAME.json.
#pragma once

#include <cstdint>
#include <string>

#include "tern/result.h"

namespace tern::tool {

struct Note {
  std::string url, etag, sha256;
  uint64_t bytes = 0;
};
inline std::string note_of(const std::string& path) { return path + ".json"; }
// Empty where there is none, or none that can be read.
Note read_note(const std::string& path);
Status write_note(const std::string& path, const Note& note);

}  // namespace tern::tool
