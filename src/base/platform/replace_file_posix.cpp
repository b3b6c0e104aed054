#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/platform/replace_file.h"
#include "base/utf8.h"

namespace tern {
namespace {

constexpr size_t kNameShown = 1000;

bool write_parts(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  std::FILE* file = std::fopen(path.c_str(), "wbx");
  if (file == nullptr) return false;
  bool written = true;
  for (const auto part : parts)
    written = written && (part.empty() || std::fwrite(part.data(), part.size(), 1, file) == 1);
  const int why = errno;
  if (std::fclose(file) != 0) return false;
  errno = why;
  return written;
}

}  // namespace

Status replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  static std::atomic<unsigned> counter{0};
  const std::string fresh = path + "." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".tmp";
  if (write_parts(fresh, parts) && std::rename(fresh.c_str(), path.c_str()) == 0) return ok();
  const std::string why = std::strerror(errno);
  std::remove(fresh.c_str());
  return make_error(Code::io, "'" + printable(path, kNameShown) + "' cannot be written: " + why, path);
}

Status replace_file(const std::string& path, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text.data(), text.size()));
  return replace_file(path, std::span(&part, 1));
}

}  // namespace tern
