// The machine-readable side. Strings may hold any bytes: what is printed is valid JSON all the same.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tern::tool {

using Json = nlohmann::ordered_json;

void print_json(const Json& json);

}  // namespace tern::tool
