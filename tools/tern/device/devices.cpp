// tern devices: what is there, and for what is not, why and what would bring it.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tern/device.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"

namespace tern::tool {
namespace {

int devices(bool json) {
  const std::vector<DeviceInfo> all = list_devices();
  if (json) {
    Json list = Json::array();
    for (const DeviceInfo& d : all) {
      list.push_back({{"spec", d.spec},
                      {"description", d.description},
                      {"available", d.available},
                      {"reason", d.reason},
                      {"workers", d.workers},
                      {"memory_total", d.memory_total},
                      {"memory_available", d.memory_available}});
    }
    print_json({{"devices", std::move(list)}});
    return kFine;
  }
  for (const DeviceInfo& d : all) {
    if (d.available) {
      std::printf("%-8s %s; %u workers; %s of %s memory free\n", d.spec.c_str(), d.description.c_str(), d.workers,
                  human_bytes(static_cast<double>(d.memory_available)).c_str(),
                  human_bytes(static_cast<double>(d.memory_total)).c_str());
    } else {
      std::printf("%-8s not available: %s\n", d.spec.c_str(), d.reason.c_str());
    }
  }
  return kFine;
}

}  // namespace

Action add_devices(CommandLine& line) {
  auto json = std::make_shared<bool>(false);
  line.flag("--json", *json, "{\"devices\": [...]}");
  line.footer("Examples:\n  tern devices\n  tern devices --json");
  return [json] { return devices(*json); };
}

}  // namespace tern::tool
