#include "base/cache/disk_cache.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/mmap.h"
#include "base/platform/replace_file.h"

namespace tern {
namespace {

struct Header {
  char magic[8];
  uint64_t bytes, hash_hi, hash_lo;
};
constexpr uint64_t kMostBytes = uint64_t{64} << 20;  // no kernel is as large
constexpr char kMagic[8] = {'t', 'e', 'r', 'n', 'c', 'a', 'c', '2'};

// The key is hashed too: an entry under another's name is damage as well.
Header header_of(const Hash& key, std::span<const std::byte> data) {
  const Hash h = Hasher().text(key.hex()).bytes(data).done();
  Header header{{}, data.size(), h.hi, h.lo};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  return header;
}

// Nothing: it is not there, or it is not what was stored. Whoever else writes to the folder, nothing here waits or
// takes the memory that a header asks for.
std::optional<std::vector<std::byte>> read_entry(const std::string& name, const Hash& key) {
  const auto file = MappedFile::open(name);
  Header header;
  if (!file || (*file)->size() < sizeof header || (*file)->size() > kMostBytes) return std::nullopt;
  std::vector<std::byte> data((*file)->size() - sizeof header);
  if (!(*file)->read(0, {reinterpret_cast<std::byte*>(&header), sizeof header}) || !(*file)->read(sizeof header, data))
    return std::nullopt;
  const Header want = header_of(key, data);
  if (std::memcmp(&header, &want, sizeof want) != 0) return std::nullopt;
  return data;
}

}  // namespace

std::string user_cache_dir(std::string_view name) {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/tern/" + std::string(name);
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/tern/" + std::string(name);
  return {};
}

std::string DiskCache::path(const Hash& key) const { return dir_ + "/" + key.hex(); }

std::optional<std::vector<std::byte>> DiskCache::find(const Hash& key) const {
  if (dir_.empty()) return std::nullopt;
  const std::string name = path(key);
  auto data = read_entry(name, key);
  std::error_code ignored;
  if (!data) std::filesystem::remove(name, ignored);
  return data;
}

void DiskCache::store(const Hash& key, std::span<const std::byte> data) const {
  if (dir_.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(dir_, failed);
  if (failed) return;
  const Header header = header_of(key, data);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&header, 1)), data};
  static_cast<void>(replace_file(path(key), parts));  // a cache that cannot be written is no failure
}

}  // namespace tern
