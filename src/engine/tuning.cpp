// Where the tuning of a device is kept: one file a device in the user's cache folder.
#include "tern/tune/tuning.h"

#include <filesystem>

#include "base/cache/disk_cache.h"
#include "base/cpu.h"
#include "base/mmap.h"
#include "base/platform/replace_file.h"
#include "base/platform/within_memory.h"
#include "engine/executable.h"

namespace tern {
namespace {

// What the times depend on: the processor, what of it is used, and how many workers share its memory.
std::string device_name(const Device& device) {
  const Caps& caps = device.impl().caps();
  return caps.device + ", " + cpu_model() + ", " + caps.isa + ", " + std::to_string(caps.workers) + " workers";
}

std::string path_of(const Device& device) {
  const std::string folder = user_cache_dir("tuning");
  return folder.empty() ? "" : folder + "/" + Hasher().text(device_name(device)).done().hex() + ".tsv";
}

}  // namespace

Result<Tuning> load_tuning(const Device& device) try {
  const std::string path = path_of(device);
  if (path.empty()) return Tuning();
  const auto file = MappedFile::open(path);
  if (!file && file.error().code == Code::not_found) return Tuning();
  if (!file) return file.error();
  std::string text((*file)->size(), '\0');
  if (const Status read = (*file)->read(0, std::as_writable_bytes(std::span(text))); !read) return read.error();
  auto tuning = Tuning::parse(text, device_name(device));
  if (tuning) return tuning;
  Error error = tuning.take_error();
  error.text += "; `tern tune` makes it again";
  error.where = path;
  return error;
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Result<std::string> save_tuning(const Device& device, const Tuning& tuning) try {
  const std::string path = path_of(device);
  if (path.empty())
    return make_error(Code::not_found, "there is no cache folder to keep the tuning in; set HOME or XDG_CACHE_HOME");
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  TERN_OK(replace_file(path, tuning.text(device_name(device))));
  return path;
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
