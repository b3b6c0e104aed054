#include "engine/code/packs.h"

#include <algorithm>
#include <filesystem>

#include "base/platform/module.h"
#include "base/version.h"

namespace tern::engine {
namespace {

constexpr std::string_view kFolder = "tern-packs", kEnding = ".pack";
// Changes whenever the code generator may give other code for the same kernel.
constexpr std::string_view kCodegenVersion = "llvm 2";

std::vector<std::string> parts_of(std::string_view isa) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= isa.size();) {
    const size_t plus = std::min(isa.find('+', at), isa.size());
    out.emplace_back(isa.substr(at, plus - at));
    at = plus + 1;
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
  std::error_code failed;
  for (const auto& file : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = file.path().filename().string();
    if (name.size() <= kEnding.size() || !name.ends_with(kEnding)) continue;
    const std::string level = name.substr(0, name.size() - kEnding.size());
    out.push_back({file.path().string(), level, open_checked(file.path().string(), level)});
  }
  std::sort(out.begin(), out.end(), [](const FoundPack& a, const FoundPack& b) { return a.level < b.level; });
  return out;
}

std::optional<FoundPack> pack_for(const std::string& folder, std::string_view isa) {
  if (folder.empty()) return std::nullopt;
  std::vector<std::string> levels;
  std::error_code failed;
  for (const auto& file : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(kEnding)) levels.push_back(name.substr(0, name.size() - kEnding.size()));
  }
  std::string level = best_level(isa, levels);
  if (level.empty()) return std::nullopt;
  std::string path = folder + "/" + level + std::string(kEnding);
  auto pack = open_checked(path, level);
  return FoundPack{std::move(path), std::move(level), std::move(pack)};
}

}  // namespace tern::engine
