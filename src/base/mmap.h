// Files mapped for reading. mmap_posix.cpp implements this; CMake chooses the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "tern/result.h"

namespace tern {

// Memory of one's own that is read in long runs: huge pages where the system has them. Advice, no more.
void advise_huge_pages(void* data, uint64_t bytes);

// A regular file, opened and mapped read-only. All methods are thread-safe.
//
// bytes() faults (SIGBUS) when somebody shortens the file while it is mapped: no portable library can prevent that.
// read() never does, so parsers use read(); those who want the speed of the mapping call still_whole() first, which
// leaves only the time of one tensor's reading open.
class MappedFile final : public ByteSource {
 public:
  static Result<std::unique_ptr<MappedFile>> open(const std::string& path);
  ~MappedFile() override;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  uint64_t size() const override { return size_; }
  Status read(uint64_t at, std::span<std::byte> out) const override;  // pread, not through the mapping
  // An error if the file is shorter now than when it was opened.
  Status still_whole() const;
  // The pages of [first, first + count) need not stay resident; they come back from the file when touched again.
  void drop(uint64_t first, uint64_t count) const;

 private:
  MappedFile(std::string path, int fd, const std::byte* data, size_t size);
  std::string path_;
  int fd_;
  const std::byte* data_;
  size_t size_;
};

}  // namespace tern
