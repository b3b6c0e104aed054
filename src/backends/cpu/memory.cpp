#include "backends/cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace tern::cpu {
namespace {

constexpr uint64_t kPage = 4096, kHuge = uint64_t{2} << 20;

uint64_t pages(uint64_t bytes) { return (std::max<uint64_t>(bytes, 1) + kPage - 1) / kPage * kPage; }

}  // namespace

struct Block::Mapping {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  ~Mapping() {
    if (data != nullptr) munmap(data, bytes);
  }

  // `size` bytes, a multiple of kPage, from the start of a huge page on where they fill one; to its end and not beyond:
  // rounded up to huge pages, more would become resident than was asked for. Null: there is none.
  static std::shared_ptr<Mapping> make(uint64_t size) {
    const uint64_t slack = size >= kHuge ? kHuge : 0;
    void* at = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    auto mapping = std::make_shared<Mapping>();
    auto* begin = static_cast<std::byte*>(at);
    const uint64_t skip = slack == 0 ? 0 : (kHuge - reinterpret_cast<uintptr_t>(begin) % kHuge) % kHuge;
    if (skip > 0) munmap(begin, skip);
    if (slack > skip) munmap(begin + skip + size, slack - skip);
    mapping->data = begin + skip;
    mapping->bytes = size;
    if (slack > 0) madvise(mapping->data, size, MADV_HUGEPAGE);  // advice: small pages do, too
    return mapping;
  }
};

Block::Block(std::shared_ptr<Mapping> mapping, std::byte* data, uint64_t bytes)
    : mapping_(std::move(mapping)), data_(data), bytes_(bytes) {}
Block::Block(Block&& other) noexcept
    : mapping_(std::move(other.mapping_)), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
Block& Block::operator=(Block&& other) noexcept {
  std::swap(mapping_, other.mapping_), std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
  return *this;
}
// Others may hold the mapping; the pages go back at once.
Block::~Block() {
  if (data_ != nullptr && mapping_.use_count() > 1) madvise(data_, pages(bytes_), MADV_DONTNEED);
}

Result<Block> Memory::allocate(uint64_t bytes) {
  if (bytes > (uint64_t{1} << 46))
    return Error{Code::out_of_memory, "a buffer is larger than this machine can address", {}, bytes, 0};
  const uint64_t size = pages(bytes);
  const Error none{Code::out_of_memory, "the system gives no memory for a buffer", {}, bytes, 0};
  const auto alone = [&]() -> Result<Block> {
    auto own = Block::Mapping::make(size);
    if (!own) return none;
    std::byte* data = own->data;
    return Block(std::move(own), data, bytes);
  };
  if (size > kLarge) return alone();
  const std::lock_guard lock(mutex_);
  if (!slab_ || size > kSlab - used_) {
    auto fresh = Block::Mapping::make(kSlab);
    if (!fresh) return alone();  // addresses are short (`ulimit -v`)
    slab_ = std::move(fresh), used_ = 0;
  }
  std::byte* data = slab_->data + used_;
  used_ += size;
  return Block(slab_, data, bytes);
}

}  // namespace tern::cpu
