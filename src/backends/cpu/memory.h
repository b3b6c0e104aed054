// Memory of the CPU device: anonymous pages, zero at first, resident when touched, in huge pages where the system has
// them. A model's matrices pass by once a token; in small pages half of that time is spent looking addresses up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "tern/result.h"

namespace tern::cpu {

// A piece of a mapping; its whole pages go back to the system with it.
class Block {
 public:
  struct Mapping;
  Block() = default;
  Block(std::shared_ptr<Mapping> mapping, std::byte* data, uint64_t bytes);
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  ~Block();
  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Mapping> mapping_;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Large blocks have a mapping of their own, small ones share mappings of kSlab bytes, each used once from its start to
// its end. What is not used costs addresses only, but for the rest of a huge page: slabs are many times as long as what
// they hold, so that a plan of memory stays right. Thread-safe.
class Memory {
 public:
  static constexpr uint64_t kSlab = uint64_t{64} << 20, kLarge = uint64_t{4} << 20;
  // Aligned to a page. Code::out_of_memory where the system gives none.
  Result<Block> allocate(uint64_t bytes);

 private:
  std::mutex mutex_;
  std::shared_ptr<Block::Mapping> slab_;
  uint64_t used_ = kSlab;
};

}  // namespace tern::cpu
