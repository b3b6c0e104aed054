#include "tools/tern/hub/net/fetch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/utf8.h"
#include "tools/tern/common/json.h"
#include "tools/tern/hub/net/http.h"
#include "tools/tern/hub/net/note.h"
#include "tools/tern/hub/net/sha256.h"

namespace tern::tool {
namespace {

namespace fs = std::filesystem;

Error file_error(const std::string& path, const std::string& what) {
  return make_error(Code::io, "'" + printable(path, 1000) + "' " + what + ": " + std::strerror(errno));
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}
std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}
// An entity tag without its marks.
std::string bare(std::string tag) {
  if (tag.rfind("W/", 0) == 0) tag.erase(0, 2);
  std::erase(tag, '"');
  return tag;
}
uint64_t number(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The unfinished file, open and locked, and what is known of it.
class Part {
 public:
  explicit Part(const FetchOptions& o)
      : options_(o), path_((fs::path(o.folder) / (o.name + ".part")).string()), note_path_(note_of(path_)) {}
  ~Part() {
    if (fd_ >= 0) close(fd_);
  }
  Part(const Part&) = delete;

  Status open();
  // Asks for what is missing, once. cut replies leave what came.
  Result<HttpReply> attempt();
  Result<Fetched> finish();
  bool whole() const { return whole_; }
  uint64_t bytes() const { return bytes_; }

  uint64_t resumed_from = 0;

 private:
  Status begin(const HttpReply& reply);
  Status take(std::span<const std::byte> piece);
  Status restart();
  Status check_room(uint64_t more) const;
  void discard() {
    unlink(path_.c_str());
    unlink(note_path_.c_str());
  }

  const FetchOptions& options_;
  std::string path_, note_path_;
  int fd_ = -1;
  uint64_t bytes_ = 0, total_ = 0;  // total 0: not known
  std::string etag_, promised_;
  Sha256 sum_;
  bool whole_ = false;
};

Status Part::open() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) return file_error(path_, "cannot be written");
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0)
    return make_error(Code::io, "'" + printable(path_, 1000) + "' is being fetched by another process");
  // Between opening and locking another process may have finished: the file that is locked has its real name then.
  struct stat mine{}, there{};
  if (fstat(fd_, &mine) != 0 || stat(path_.c_str(), &there) != 0 || mine.st_ino != there.st_ino)
    return make_error(Code::io, "'" + printable(path_, 1000) + "' was finished by another process just now");
  const Note note = read_note(note_path_);
  if (note.url != options_.url || note.etag.empty()) return restart();
  etag_ = note.etag;
  std::vector<std::byte> piece(size_t{1} << 20);
  for (;;) {
    const ssize_t n = pread(fd_, piece.data(), piece.size(), static_cast<off_t>(bytes_));
    if (n < 0) return file_error(path_, "cannot be read");
    if (n == 0) break;
    sum_.update(std::span(piece).first(static_cast<size_t>(n)));
    bytes_ += static_cast<uint64_t>(n);
  }
  resumed_from = bytes_;
  return ok();
}

Status Part::restart() {
  if (ftruncate(fd_, 0) != 0) return file_error(path_, "cannot be written");
  bytes_ = total_ = resumed_from = 0;
  sum_ = Sha256();
  etag_.clear();
  return ok();
}

Status Part::check_room(uint64_t more) const {
  std::error_code error;
  const fs::space_info space = fs::space(options_.folder, error);
  if (error || more <= space.available) return ok();
  return Error{Code::out_of_memory,
               "the disk of '" + printable(options_.folder, 1000) + "' has " + std::to_string(space.available) +
                   " bytes left and '" + printable(options_.name) + "' needs " + std::to_string(more) + " more",
               {},
               more,
               space.available};
}

Status Part::begin(const HttpReply& reply) {
  if (reply.status == 200 && bytes_ > 0) TERN_OK(restart());  // the server has another file now, or no ranges
  const uint64_t length = number(reply.header("content-length"));
  if (reply.status == 206) {
    // "bytes 100-199/200": what comes must begin where the file ends.
    const std::string range = reply.header("content-range");
    const size_t slash = range.find('/');
    if (range.rfind("bytes " + std::to_string(bytes_) + "-", 0) != 0 || slash == std::string::npos)
      return make_error(Code::malformed, "the server answers with '" + printable(range) + "' where bytes from " +
                                             std::to_string(bytes_) + " on were asked for");
    total_ = number(std::string_view(range).substr(slash + 1));
  } else {
    total_ = length;
  }
  if (total_ > bytes_) TERN_OK(check_room(total_ - bytes_));
  etag_ = reply.header("etag");
  if (etag_.rfind("W/", 0) == 0) etag_.clear();  // a weak tag does not promise the same bytes
  if (const std::string linked = bare(reply.header("x-linked-etag")); is_sha256(linked)) promised_ = lower(linked);
  return write_note(note_path_, {options_.url, etag_, {}, 0});
}

Status Part::take(std::span<const std::byte> piece) {
  sum_.update(piece);
  while (!piece.empty()) {
    const ssize_t n = pwrite(fd_, piece.data(), piece.size(), static_cast<off_t>(bytes_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == ENOSPC || errno == EDQUOT)) {
      Error error = file_error(path_, "cannot be written");
      error.code = Code::out_of_memory;
      return error;
    }
    if (n < 0) return file_error(path_, "cannot be written");
    bytes_ += static_cast<uint64_t>(n);
    piece = piece.subspan(static_cast<size_t>(n));
  }
  if (options_.progress) options_.progress(bytes_, total_);
  return ok();
}

Result<HttpReply> Part::attempt() {
  HttpRequest request{options_.url, {}};
  if (bytes_ > 0 && etag_.empty()) TERN_OK(restart());
  if (bytes_ > 0) {
    request.headers.push_back("Range: bytes=" + std::to_string(bytes_) + "-");
    request.headers.push_back("If-Range: " + etag_);
  }
  TERN_TRY(HttpReply reply, http_get(
                                request, [this](const HttpReply& r) { return begin(r); },
                                [this](std::span<const std::byte> piece) { return take(piece); }));
  if (reply.status == 416 && !reply.cut) {  // nothing is left to ask for: "bytes */200"
    const std::string range = reply.header("content-range");
    if (range == "bytes */" + std::to_string(bytes_)) {
      whole_ = true;
    } else {
      TERN_OK(restart());
      reply.cut = true;
      reply.why = "the file on the server is another now";
    }
    return reply;
  }
  whole_ = !reply.cut && (reply.status == 200 || reply.status == 206) && (total_ == 0 || bytes_ == total_);
  if (!whole_ && !reply.cut && (reply.status == 200 || reply.status == 206)) {
    reply.cut = true;
    reply.why = "the answer ended early";
  }
  return reply;
}

Result<Fetched> Part::finish() {
  Fetched out;
  out.bytes = bytes_;
  out.sha256 = sum_.hex();
  out.resumed_from = resumed_from;
  const std::string want = options_.sha256.empty() ? promised_ : lower(options_.sha256);
  out.checked = !want.empty();
  if (!want.empty() && want != out.sha256) {
    discard();
    return make_error(Code::malformed, "what came from " + printable(options_.url, 500) + " has the SHA-256 " +
                                           out.sha256 + ", wanted is " + want + "; nothing is kept");
  }
  char magic[4] = {};
  if (pread(fd_, magic, 4, 0) != 4 || std::memcmp(magic, "GGUF", 4) != 0) {
    discard();
    return make_error(Code::malformed,
                      "what came from " + printable(options_.url, 500) + " is no GGUF file; nothing is kept");
  }
  if (fsync(fd_) != 0) return file_error(path_, "cannot be written");
  out.path = (fs::path(options_.folder) / options_.name).string();
  TERN_OK(write_note(note_of(out.path), {options_.url, etag_, out.sha256, bytes_}));
  if (rename(path_.c_str(), out.path.c_str()) != 0) return file_error(out.path, "cannot be written");
  unlink(note_path_.c_str());
  return out;
}

Error refused(const HttpReply& reply, const std::string& url) {
  const std::string at = printable(url, 500) + " answers " + std::to_string(reply.status);
  if (reply.status == 404 || reply.status == 410) return make_error(Code::not_found, at + ": there is no such file");
  if (reply.status == 401 || reply.status == 403)
    return make_error(Code::io, at + ": it is not given to everybody; fetch it by other means and give its path");
  return make_error(Code::io, at);
}

// A file that is there under this name.
Result<Fetched> present(const FetchOptions& o, const std::string& path) {
  const Note note = read_note(note_of(path));
  if (note.url != o.url) {
    return make_error(Code::invalid, "there is another '" + printable(o.name) + "' in " + printable(o.folder, 1000) +
                                         (note.url.empty() ? "" : ", from " + printable(note.url, 500)) +
                                         "; give this one another name (--name), or `tern rm` that one");
  }
  if (!o.sha256.empty() && lower(o.sha256) != note.sha256)
    return make_error(Code::malformed, "'" + printable(path, 1000) + "' is there and has the SHA-256 " + note.sha256 +
                                           ", wanted is " + lower(o.sha256));
  Fetched out;
  out.path = path;
  out.sha256 = note.sha256;
  out.bytes = note.bytes;
  out.was_there = true;
  out.checked = !o.sha256.empty();
  return out;
}

}  // namespace

Result<Fetched> fetch(const FetchOptions& options) {
  if (!options.sha256.empty() && !is_sha256(options.sha256))
    return make_error(Code::invalid, "'" + printable(options.sha256) + "' is no SHA-256: 64 hexadecimal digits");
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error)
    return make_error(Code::io, "'" + printable(options.folder, 1000) + "' cannot be made: " + error.message());
  const std::string path = (fs::path(options.folder) / options.name).string();
  if (fs::exists(path, error)) return present(options, path);
  Part part(options);
  TERN_OK(part.open());
  for (unsigned failures = 0;;) {
    const uint64_t before = part.bytes();
    TERN_TRY(const HttpReply reply, part.attempt());
    if (part.whole()) return part.finish();
    const bool busy = reply.status == 429 || reply.status >= 500;
    if (!reply.cut && !busy) return refused(reply, options.url);
    failures = part.bytes() > before ? 0 : failures + 1;
    if (failures > options.retries) {
      if (!reply.cut) return refused(reply, options.url);
      return make_error(Code::io, "the connection to " + printable(options.url, 500) + " fails: " + reply.why +
                                      (part.bytes() > 0 ? "; what came is kept, the next `tern pull` goes on" : ""));
    }
    if (failures > 0) std::this_thread::sleep_for(std::chrono::milliseconds(250) * (1u << std::min(failures, 6u)));
  }
}

}  // namespace tern::tool
