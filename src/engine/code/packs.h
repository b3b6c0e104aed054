// Packs of kernels that were compiled with tern: where they lie, which one this processor takes, and how they are made.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernel_pack.h"

namespace tern::engine {

// What a pack's header and every cache key say: the version and the revision of the code generator.
std::string codegen_identity();

// What identifies a kernel's object, in packs and in caches.
Hash object_key(std::span<const std::byte> kir, std::string_view isa);

// given: Options::pack_dir. Empty: the folder beside the library, or the program; no folder where there is none.
std::string packs_folder(const std::string& given);

// The best level of `levels` for a processor: the same base, and no feature that it lacks.
std::string best_level(std::string_view isa, const std::vector<std::string>& levels);

struct FoundPack {
  std::string path, level;
  Result<runtime::KernelPack> pack;  // or why it is not taken
};
// Every pack of the folder, by level.
std::vector<FoundPack> list_packs(const std::string& folder);
// The one that a processor takes; nothing where the folder has none for it.
std::optional<FoundPack> pack_for(const std::string& folder, std::string_view isa);

}  // namespace tern::engine
