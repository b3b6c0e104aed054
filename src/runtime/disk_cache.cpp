#include "runtime/disk_cache.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/platform/replace_file.h"

namespace tern::runtime {
namespace {

struct Header {
  char magic[8];
  uint64_t bytes, hash_hi, hash_lo;
};
constexpr char kMagic[8] = {'t', 'e', 'r', 'n', 'c', 'a', 'c', '2'};

// The key is hashed too: an entry under another's name is damage as well.
Header header_of(const Hash& key, std::span<const std::byte> data) {
  const Hash h = Hasher().text(key.hex()).bytes(data).done();
  Header header{{}, data.size(), h.hi, h.lo};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  return header;
}

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

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
  const File file(std::fopen(name.c_str(), "rb"));
  if (!file) return std::nullopt;
  Header header;
  std::error_code ignored;
  const uint64_t size = std::filesystem::file_size(name, ignored);
  if (std::fread(&header, sizeof header, 1, file.get()) == 1 && std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
      !ignored && size == sizeof header + header.bytes) {
    std::vector<std::byte> data(header.bytes);
    if (data.empty() || std::fread(data.data(), data.size(), 1, file.get()) == 1) {
      const Header want = header_of(key, data);
      if (want.hash_hi == header.hash_hi && want.hash_lo == header.hash_lo) return data;
    }
  }
  std::filesystem::remove(name, ignored);
  return std::nullopt;
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

}  // namespace tern::runtime
