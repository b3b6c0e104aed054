#include "runtime/kernel_pack.h"

#include <algorithm>
#include <cstring>

#include "base/platform/replace_file.h"

namespace tern::runtime {
namespace {

constexpr char kMagic[8] = {'t', 'e', 'r', 'n', 'p', 'a', 'c', '1'};
constexpr uint64_t kAlign = 16;
constexpr uint32_t kMostText = 4096, kMostKernels = 1u << 20;

struct Header {
  char magic[8];
  uint64_t hash_hi, hash_lo;  // of what follows, up to the objects
  uint64_t file_bytes;
  uint32_t level_bytes, codegen_bytes, kernels, objects_at;
};
struct Entry {
  uint64_t key_hi, key_lo, hash_hi, hash_lo;
  uint64_t at, bytes;
};
constexpr size_t kHashed = offsetof(Header, file_bytes);

uint64_t aligned(uint64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }
Hash object_hash(const Hash& key, std::span<const std::byte> object) {
  return Hasher().u64(key.hi).u64(key.lo).bytes(object).done();
}

}  // namespace

Result<KernelPack> KernelPack::open(const std::string& path) {
  TERN_TRY(std::unique_ptr<MappedFile> file, MappedFile::open(path));
  const auto refuse = [&](const std::string& what) {
    return make_error(Code::malformed, "the kernel pack " + path + " is damaged: " + what + "; install tern again");
  };
  Header h;
  if (file->size() < sizeof h || !file->read(0, {reinterpret_cast<std::byte*>(&h), sizeof h}))
    return refuse("it has " + std::to_string(file->size()) + " bytes");
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0) return refuse("it does not begin as packs of this version do");
  if (h.file_bytes != file->size())
    return refuse("it has " + std::to_string(file->size()) + " bytes of " + std::to_string(h.file_bytes));
  if (h.level_bytes > kMostText || h.codegen_bytes > kMostText || h.kernels > kMostKernels)
    return refuse("its header names absurd sizes");
  const uint64_t texts = sizeof h, index = aligned(texts + h.level_bytes + h.codegen_bytes),
                 end = index + uint64_t{h.kernels} * sizeof(Entry);
  if (end != h.objects_at || end > file->size()) return refuse("its index does not end where its objects begin");
  TERN_OK(file->still_whole());
  const std::span<const std::byte> bytes = file->bytes();
  const Hash hash = Hasher().bytes(bytes.subspan(kHashed, end - kHashed)).done();
  if (hash.hi != h.hash_hi || hash.lo != h.hash_lo) return refuse("its index has another checksum than was written");
  KernelPack pack;
  const auto text = [&](uint64_t at, uint32_t count) {
    return std::string(reinterpret_cast<const char*>(bytes.data() + at), count);
  };
  pack.level_ = text(texts, h.level_bytes);
  pack.codegen_ = text(texts + h.level_bytes, h.codegen_bytes);
  pack.count_ = h.kernels;
  pack.index_ = index;
  pack.file_ = std::move(file);
  return pack;
}

namespace {

Entry entry(const MappedFile& file, size_t index, size_t i) {
  return load_le<Entry>(file.bytes().data() + index + i * sizeof(Entry));
}

}  // namespace

Hash KernelPack::key(size_t i) const {
  const Entry e = entry(*file_, index_, i);
  return {e.key_hi, e.key_lo};
}

Result<std::vector<std::byte>> KernelPack::object(size_t i) const {
  const Entry e = entry(*file_, index_, i);
  const auto damaged = [&] {
    return make_error(Code::malformed,
                      "the kernel pack " + path() + " is damaged: the object of entry " + std::to_string(i) +
                          " has another checksum than was written; install tern again",
                      path());
  };
  TERN_OK(file_->still_whole());
  if (e.at > file_->size() || e.bytes > file_->size() - e.at) return damaged();
  const std::span<const std::byte> bytes = file_->bytes().subspan(e.at, e.bytes);
  if (object_hash({e.key_hi, e.key_lo}, bytes) != Hash{e.hash_hi, e.hash_lo}) return damaged();
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<std::optional<std::vector<std::byte>>> KernelPack::find(const Hash& wanted) const {
  size_t low = 0, high = count_;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (key(middle) < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == count_ || key(low) != wanted) return std::optional<std::vector<std::byte>>();
  TERN_TRY(std::vector<std::byte> found, object(low));
  return std::optional(std::move(found));
}

std::vector<std::byte> pack_bytes(const PackContents& contents) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.level_bytes = static_cast<uint32_t>(contents.level.size());
  h.codegen_bytes = static_cast<uint32_t>(contents.codegen.size());
  h.kernels = static_cast<uint32_t>(contents.objects.size());
  const uint64_t index = aligned(sizeof h + contents.level.size() + contents.codegen.size());
  h.objects_at = static_cast<uint32_t>(index + contents.objects.size() * sizeof(Entry));
  uint64_t end = h.objects_at;
  for (const auto& [key, object] : contents.objects) end = aligned(end) + object.size();
  h.file_bytes = end;
  std::vector<std::byte> out(end);
  const auto put = [&](uint64_t at, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(out.data() + at, from, bytes);
  };
  put(sizeof h, contents.level.data(), contents.level.size());
  put(sizeof h + contents.level.size(), contents.codegen.data(), contents.codegen.size());
  uint64_t at = index, place = h.objects_at;
  for (const auto& [key, object] : contents.objects) {
    place = aligned(place);
    const Hash hash = object_hash(key, object);
    const Entry e{key.hi, key.lo, hash.hi, hash.lo, place, object.size()};
    put(at, &e, sizeof e);
    put(place, object.data(), object.size());
    at += sizeof e;
    place += object.size();
  }
  put(0, &h, sizeof h);
  const Hash hash = Hasher().bytes(std::span(out).subspan(kHashed, h.objects_at - kHashed)).done();
  h.hash_hi = hash.hi, h.hash_lo = hash.lo;
  put(0, &h, sizeof h);
  return out;
}

Status write_pack(const std::string& path, const PackContents& contents) {
  const std::vector<std::byte> bytes = pack_bytes(contents);
  const std::span<const std::byte> whole = bytes;
  return replace_file(path, std::span(&whole, 1));
}

}  // namespace tern::runtime
