// A pack of kernel objects for one instruction set: one file, made when tern is built, mapped when kernels are needed.
//
// Layout (little-endian): magic, hash of all up to the objects, bytes of the file, counts; the level's and the code
// generator's names; the index, sorted by key; the objects, each from a multiple of 16. The hash is tested when a pack
// is opened, that of an object when it is taken: a damaged pack is refused with a sentence and never runs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/mmap.h"

namespace tern::runtime {

struct PackContents {
  std::string level;    // "x86-64-v4+avx512vnni": what a processor must have
  std::string codegen;  // what made the objects; other code generators' objects are not taken
  std::map<Hash, std::vector<std::byte>> objects;
};

// Thread-safe; copies share the mapping.
class KernelPack {
 public:
  // Code::malformed with what is wrong, and where.
  static Result<KernelPack> open(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::string& level() const { return level_; }
  const std::string& codegen() const { return codegen_; }
  size_t kernels() const { return count_; }
  uint64_t bytes() const { return file_->size(); }
  Hash key(size_t i) const;

  // Nothing where the pack has no such kernel; Code::malformed where its object is damaged.
  Result<std::optional<std::vector<std::byte>>> find(const Hash& key) const;

 private:
  KernelPack() = default;
  Result<std::vector<std::byte>> object(size_t i) const;
  std::shared_ptr<const MappedFile> file_;
  std::string level_, codegen_;
  size_t count_ = 0, index_ = 0;  // number of entries, and where they begin
};

std::vector<std::byte> pack_bytes(const PackContents& contents);
// Written under another name and renamed.
Status write_pack(const std::string& path, const PackContents& contents);

}  // namespace tern::runtime
