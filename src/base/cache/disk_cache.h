// A folder of compiled kernels by key. Safe for several processes at once.
//
// An entry is written to a temporary name and renamed, carries a checksum, and is ignored (and removed) where it is
// damaged.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"

namespace tern {

// tern/<name> in the user's cache folder (XDG_CACHE_HOME, else HOME/.cache); empty where neither is set.
std::string user_cache_dir(std::string_view name);

class DiskCache {
 public:
  // dir empty: no cache, every look-up misses and every store is dropped.
  explicit DiskCache(std::string dir) : dir_(std::move(dir)) {}
  std::optional<std::vector<std::byte>> find(const Hash& key) const;
  void store(const Hash& key, std::span<const std::byte> data) const;  // best effort: a full disk is no error
  const std::string& dir() const { return dir_; }

 private:
  std::string path(const Hash& key) const;
  std::string dir_;
};

}  // namespace tern
