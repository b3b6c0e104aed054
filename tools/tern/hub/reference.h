// What `tern pull` was asked for, as addresses of files.
#pragma once

#include <string>
#include <vector>

#include "tern/result.h"

namespace tern::tool {

struct Wanted {
  std::string url, name;  // name: of the file in the folder
};
struct HubOptions {
  std::string hub = "https://huggingface.co", revision = "main";
};
// "http(s)://..." as it is; "hf:owner/name/file" on the hub; "owner/name" or "owner/name:quant": the file of that
// quantisation, by the hub's list of the model's files. Of a split model all parts. Errors name what there is.
Result<std::vector<Wanted>> resolve_reference(const std::string& reference, const HubOptions& options);

// A plain name that ends in .gguf.
Status check_file_name(const std::string& name);
// All parts of a split model in place of one of them (NAME-00002-of-00003.gguf), else the name alone.
std::vector<std::string> parts_of(const std::string& path);

}  // namespace tern::tool
