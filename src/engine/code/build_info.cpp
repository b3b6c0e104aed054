#include "base/version.h"
#include "emit/llvm_compiler.h"
#include "engine/code/packs.h"
#include "engine/registry.h"
#include "tern/build.h"

namespace tern {

BuildInfo build_info() {
  BuildInfo info;
  info.version = std::string(version());
  info.compiler = std::string(compiler());
  info.codegen = engine::codegen_identity();
  if (const auto plugin = LlvmCompiler::open()) {
    info.plugin = plugin->identity();
    info.plugin_path = plugin->path();
  } else {
    info.plugin_refusal = plugin.error().message();
  }
  for (const std::string_view level : engine::pack_levels()) info.levels.emplace_back(level);
  info.packs_folder = engine::packs_folder({});
  const auto mine = engine::pack_for(info.packs_folder, engine::host_isa());
  for (const engine::FoundPack& found : engine::list_packs(info.packs_folder)) {
    KernelPackInfo pack;
    pack.path = found.path;
    pack.level = found.level;
    if (found.pack) {
      pack.codegen = found.pack->codegen();
      pack.kernels = static_cast<uint32_t>(found.pack->kernels());
      pack.bytes = found.pack->bytes();
      pack.used = mine && mine->level == found.level;
    } else {
      pack.refusal = found.pack.error().message();
    }
    info.packs.push_back(std::move(pack));
  }
  return info;
}

}  // namespace tern
