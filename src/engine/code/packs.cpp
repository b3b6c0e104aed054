#include "engine/code/packs.h"

#include <algorithm>
#include <filesystem>

#include "base/platform/module.h"
#include "base/version.h"
#include "engine/registry.h"

namespace tern::engine {
namespace {

constexpr std::string_view kFolder = "tern-packs", kEnding = ".pack";
// Changes whenever the code generator may give other code for the same kernel.
constexpr std::string_view kCodegenVersion = "llvm 4";

std::vector<std::string> parts_of(std::string_view isa) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= isa.size();) {
    const size_t plus = std::min(isa.find('+', at), isa.size());
    out.emplace_back(isa.substr(at, plus - at));
    at = plus + 1;
  }
  return out;
}

std::string path_of(const std::string& folder, std::string_view level) {
  return folder + "/" + std::string(level) + std::string(kEnding);
}

// The levels that the folder has packs of. (Walking it would end the process where memory ends: libstdc++ does.)
std::vector<std::string> levels_in(const std::string& folder) {
  std::vector<std::string> out;
  if (folder.empty()) return out;
  for (const std::string_view level : pack_levels()) {
    std::error_code ignored;
    if (std::filesystem::exists(path_of(folder, level), ignored)) out.emplace_back(level);
  }
  return out;
}

// Made by this library's code generator, and named by what it holds.
Result<runtime::KernelPack> open_checked(const std::string& path, const std::string& level) {
  TERN_TRY(runtime::KernelPack pack, runtime::KernelPack::open(path));
  if (pack.codegen() != codegen_identity())
    return make_error(Code::unsupported, "the kernel pack " + path + " was made by '" + pack.codegen() +
                                             "', this build takes '" + codegen_identity() + "'; install tern again");
  if (pack.level() != level)
    return make_error(Code::malformed, "the kernel pack " + path + " holds code for " + pack.level());
  return pack;
}

}  // namespace

std::string codegen_identity() { return "tern " + std::string(version()) + ", " + std::string(kCodegenVersion); }

Hash object_key(std::span<const std::byte> kir, std::string_view isa) {
  return Hasher().text(version()).text(kCodegenVersion).text(isa).bytes(kir).done();
}

std::string packs_folder(const std::string& given) {
  if (given == "none") return {};
  if (!given.empty()) return given;
  const std::string folder = module_folder();
  if (folder.empty()) return {};
  for (const std::string& place : {folder + "/" + std::string(kFolder), folder + "/../lib/" + std::string(kFolder)}) {
    std::error_code ignored;
    if (std::filesystem::is_directory(place, ignored)) return place;
  }
  return {};
}

std::string best_level(std::string_view isa, const std::vector<std::string>& levels) {
  const std::vector<std::string> have = parts_of(isa);
  std::string best;
  size_t most = 0;
  for (const std::string& level : levels) {
    const std::vector<std::string> want = parts_of(level);
    const bool lacks = std::any_of(want.begin(), want.end(), [&](const std::string& part) {
      return std::find(have.begin(), have.end(), part) == have.end();
    });
    if (lacks || want[0] != have[0] || want.size() <= most) continue;
    best = level;
    most = want.size();
  }
  return best;
}

std::vector<FoundPack> list_packs(const std::string& folder) {
  std::vector<FoundPack> out;
  for (const std::string& level : levels_in(folder))
    out.push_back({path_of(folder, level), level, open_checked(path_of(folder, level), level)});
  return out;
}

std::optional<FoundPack> pack_for(const std::string& folder, std::string_view isa) {
  std::string level = best_level(isa, levels_in(folder));
  if (level.empty()) return std::nullopt;
  std::string path = path_of(folder, level);
  auto pack = open_checked(path, level);
  return FoundPack{std::move(path), std::move(level), std::move(pack)};
}

}  // namespace tern::engine
