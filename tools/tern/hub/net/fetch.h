// One file from a server into a folder: resumed where it was left, checked, and there under its name only when whole.
#pragma once

#include <functional>
#include <string>

#include "tern/result.h"

namespace tern::tool {

struct FetchOptions {
  std::string url, folder, name;
  std::string sha256;  // 64 hex digits; empty: what the server says of the file, if it does (X-Linked-Etag)
  unsigned retries = 5;
  std::function<void(uint64_t done, uint64_t total)> progress;  // total 0: not known
};
struct Fetched {
  std::string path, sha256;
  uint64_t bytes = 0, resumed_from = 0;
  bool was_there = false, checked = false;  // checked: against a sum that was given or told
};
// What was fetched from this address before is not fetched again. Errors: Code::not_found and io of the server,
// malformed where the bytes are not what was promised (they are thrown away then), out_of_memory where the disk is
// short, invalid where another file has the name.
Result<Fetched> fetch(const FetchOptions& options);

}  // namespace tern::tool
