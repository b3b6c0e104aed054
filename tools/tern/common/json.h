// The machine-readable side. Strings may hold any bytes: what is printed is valid JSON all the same.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace tern::tool {

using Json = nlohmann::ordered_json;

inline void print_json(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace tern::tool
