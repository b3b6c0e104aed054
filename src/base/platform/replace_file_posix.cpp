#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/platform/replace_file.h"
#include "base/utf8.h"

namespace tern {
namespace {

constexpr size_t kNameShown = 1000;

bool write_parts(int fd, std::span<const std::span<const std::byte>> parts) {
  if (fd < 0) return false;
  std::FILE* file = fdopen(fd, "wb");
  if (file == nullptr) {
    ::close(fd);
    return false;
  }
  bool written = true;
  for (const auto part : parts)
    written = written && (part.empty() || std::fwrite(part.data(), part.size(), 1, file) == 1);
  const int why = errno;
  if (std::fclose(file) != 0) return false;
  errno = why;
  return written;
}

// A terminal, a pipe, a device, or a link to nothing yet: there is nothing to replace.
bool write_through(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  // A pipe that nobody reads is refused instead of waited for.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
  if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return write_parts(fd, parts);
}

// old: what is there already, or nullptr.
bool write_beside(const std::string& path, const struct stat* old, std::span<const std::span<const std::byte>> parts) {
  static std::atomic<unsigned> counter{0};
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const std::string fresh = folder + ".tern." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".tmp";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, old != nullptr ? 0600 : 0666);
  if (fd < 0) return false;
  const bool mode = old == nullptr || fchmod(fd, old->st_mode & 07777) == 0;
  if (write_parts(fd, parts) && mode && std::rename(fresh.c_str(), path.c_str()) == 0) return true;
  const int why = errno;
  std::remove(fresh.c_str());
  errno = why;
  return false;
}

bool replace(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    const bool link = ::lstat(path.c_str(), &info) == 0;
    return link ? write_through(path, parts) : write_beside(path, nullptr, parts);
  }
  if (!S_ISREG(info.st_mode)) return write_through(path, parts);
  char* const real = ::realpath(path.c_str(), nullptr);  // a link stays, what it names is replaced
  if (real == nullptr) return false;
  const std::string target = real;
  std::free(real);
  return write_beside(target, &info, parts);
}

}  // namespace

Status replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  if (replace(path, parts)) return ok();
  const std::string why = std::strerror(errno);
  return make_error(Code::io, "'" + printable(path, kNameShown) + "' cannot be written: " + why, path);
}

Status replace_file(const std::string& path, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text.data(), text.size()));
  return replace_file(path, std::span(&part, 1));
}

}  // namespace tern
