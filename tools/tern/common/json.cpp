#include "tools/tern/common/json.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace tern::tool {

void print_json(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace tern::tool
