#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "base/mmap.h"

namespace tern {
namespace {

Error system_error(const std::string& path, const char* what, int number) {
  const Code code = number == ENOENT || number == ENOTDIR ? Code::not_found
                    : number == ENOMEM                    ? Code::out_of_memory
                                                          : Code::io;
  return make_error(code, "cannot " + std::string(what) + " " + path + ": " + std::generic_category().message(number));
}

}  // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: a FIFO must not hang us; it is refused below.
  int fd;
  do fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return system_error(path, "open", errno);
  struct stat info{};
  if (::fstat(fd, &info) != 0) {
    const int number = errno;
    ::close(fd);
    return system_error(path, "examine", number);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return make_error(Code::io, path + " is not a regular file");
  }
  const auto size64 = static_cast<uint64_t>(info.st_size);
  if (size64 > std::numeric_limits<size_t>::max() / 2) {
    ::close(fd);
    return make_error(Code::limit, path + " is too large for this machine's address space");
  }
  void* data = nullptr;
  if (size64 > 0) {
    data = ::mmap(nullptr, static_cast<size_t>(size64), PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const int number = errno;
      ::close(fd);
      return system_error(path, "map", number);
    }
  }
  return std::unique_ptr<MappedFile>(
      new MappedFile(path, fd, static_cast<const std::byte*>(data), static_cast<size_t>(size64)));
}

MappedFile::MappedFile(std::string path, int fd, const std::byte* data, size_t size)
    : path_(std::move(path)), fd_(fd), data_(data), size_(size) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  ::close(fd_);
}

Status MappedFile::read(uint64_t at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(at));
    if (got < 0) {
      if (errno == EINTR) continue;
      return system_error(path_, "read", errno);
    }
    if (got == 0) return make_error(Code::io, path_ + " ends before byte " + std::to_string(at + out.size()));
    at += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
  return ok();
}

Status MappedFile::still_whole() const {
  struct stat info{};
  if (::fstat(fd_, &info) != 0) return system_error(path_, "examine", errno);
  if (static_cast<uint64_t>(info.st_size) >= size_) return ok();
  Error error = make_error(Code::io, path_ + " was shortened while in use: " + std::to_string(info.st_size) +
                                         " bytes now, " + std::to_string(size_) + " when it was opened");
  error.need = size_;
  error.have = static_cast<uint64_t>(info.st_size);
  return error;
}

void advise_huge_pages(void* data, uint64_t bytes) { ::madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE); }

void MappedFile::drop(uint64_t first, uint64_t count) const {
  if (first >= size_ || count == 0) return;
  // Both ends round down: the page at the end may hold bytes that are still to be read, the one at the start was behind
  // us.
  static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t end_byte = first + std::min<uint64_t>(count, size_ - first);
  const uint64_t begin = first / page * page;
  const uint64_t end = end_byte == size_ ? (size_ + page - 1) / page * page : end_byte / page * page;
  if (end > begin) ::madvise(const_cast<std::byte*>(data_) + begin, static_cast<size_t>(end - begin), MADV_DONTNEED);
}

}  // namespace tern
