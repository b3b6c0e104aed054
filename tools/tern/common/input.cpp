#include "tools/tern/common/input.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/utf8.h"
#include "tools/tern/common/report.h"

namespace tern::tool {
namespace {

constexpr size_t kLongestText = size_t{256} << 20;

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

Result<std::string> read_all(std::FILE* file, const std::string& name) {
  std::string text;
  char piece[1 << 16];
  for (;;) {
    const size_t n = std::fread(piece, 1, sizeof piece, file);
    text.append(piece, n);
    if (text.size() > kLongestText)
      return make_error(Code::limit, name + " holds more than 256 MiB, too much for a prompt");
    if (n < sizeof piece) break;
  }
  if (std::ferror(file) != 0) return make_error(Code::io, name + " cannot be read: " + std::strerror(errno));
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

Result<std::vector<TokenId>> parse_ids(std::string_view text) {
  std::vector<TokenId> ids;
  text = trim(text);
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = trim(text.substr(0, comma));
    TokenId id = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), id);
    if (error != std::errc{} || end != part.data() + part.size() || id < 0) {
      return make_error(Code::invalid, "'" + printable(part) + "' is no token id; ids are written 1,2,3");
    }
    ids.push_back(id);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (trim(text).empty()) return make_error(Code::invalid, "a list of ids ends with a comma; ids are written 1,2,3");
  }
  return ids;
}

Status check_ids(const std::vector<TokenId>& ids, size_t vocabulary, std::string_view option) {
  for (const TokenId id : ids) {
    if (static_cast<size_t>(id) >= vocabulary) {
      return make_error(Code::invalid, std::string(option) + ": token id " + std::to_string(id) +
                                           " lies outside the vocabulary of " + std::to_string(vocabulary));
    }
  }
  return ok();
}

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return read_all(stdin, "the standard input");
  const std::string name = "'" + printable(path) + "'";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file)
    return make_error(errno == ENOENT ? Code::not_found : Code::io,
                      name + " cannot be opened: " + std::strerror(errno));
  return read_all(file.get(), name);
}

Result<std::string> take_text(const TextSource& source, std::string_view option) {
  if (source.text) return *source.text;
  if (source.file) return read_text(*source.file);
  if (!stdin_is_terminal()) return read_text("-");
  return make_error(Code::invalid, "there is no text: give " + std::string(option) + " TEXT, -f FILE or a pipe");
}

}  // namespace tern::tool
