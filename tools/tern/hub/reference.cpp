#include "tools/tern/hub/reference.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/utf8.h"
#include "tern/format.h"
#include "tools/tern/common/json.h"
#include "tools/tern/hub/net/http.h"

namespace tern::tool {
namespace {

constexpr size_t kLongestList = size_t{16} << 20;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string encoded(std::string_view path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%', out += kDigits[u >> 4], out += kDigits[u & 15];
    }
  }
  return out;
}
std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hex = text[i] == '%' && i + 2 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                     std::isxdigit(static_cast<unsigned char>(text[i + 2]));
    if (hex) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Result<std::vector<Wanted>> all_parts(const std::string& base, const std::string& path, const std::string& query) {
  std::vector<Wanted> out;
  for (const std::string& part : parts_of(path)) out.push_back({base + part + query, decoded(last_part(part))});
  return out;
}

// Whether a file's name says this quantisation: between marks, so that Q4_K is not found in Q4_K_M.
bool says(const std::string& path, const std::string& quant) {
  const std::string name = lower(last_part(path)), want = lower(quant);
  for (size_t at = name.find(want); at != std::string::npos; at = name.find(want, at + 1)) {
    const char before = at == 0 ? '-' : name[at - 1],
               after = at + want.size() < name.size() ? name[at + want.size()] : '.';
    if ((before == '-' || before == '.' || before == '_') && (after == '-' || after == '.')) return true;
  }
  return false;
}

Result<std::vector<std::string>> list_files(const std::string& model, const HubOptions& options) {
  std::string url = options.hub + "/api/models/" + encoded(model);
  if (options.revision != "main") url += "/revision/" + encoded(options.revision);
  std::string text;
  TERN_TRY(const HttpReply reply, http_get(
                                      {url, {"Accept: application/json"}}, [](const HttpReply&) { return ok(); },
                                      [&](std::span<const std::byte> piece) -> Status {
                                        if (text.size() + piece.size() > kLongestList)
                                          return make_error(Code::limit, "the hub's list of files is too long");
                                        text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
                                        return ok();
                                      }));
  if (reply.cut) return make_error(Code::io, "the connection to " + printable(url, 500) + " fails: " + reply.why);
  if (reply.status == 404 || reply.status == 401)
    return make_error(Code::not_found, "there is no model '" + printable(model) + "' on " + printable(options.hub) +
                                           " that everybody may read");
  if (reply.status != 200)
    return make_error(Code::io, printable(url, 500) + " answers " + std::to_string(reply.status));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("siblings") || !json["siblings"].is_array())
    return make_error(Code::malformed, printable(url, 500) + " gives no list of files");
  std::vector<std::string> files;
  for (const Json& file : json["siblings"]) {
    if (!file.is_object() || !file.contains("rfilename") || !file["rfilename"].is_string()) continue;
    const std::string name = file["rfilename"];
    // Projectors of images lie beside the models that they belong to.
    if (lower(name).ends_with(".gguf") && lower(last_part(name)).rfind("mmproj", 0) != 0) files.push_back(name);
  }
  return files;
}

std::string listed(const std::vector<std::string>& files) {
  std::string out;
  for (size_t i = 0; i < files.size() && i < 40; ++i) out += (i > 0 ? ", " : "") + printable(files[i], 200);
  return out + (files.size() > 40 ? ", ..." : "");
}

// What is taken where nothing is said: small and good first, as far as this build runs it.
constexpr struct {
  const char *quant, *format;
} kUsual[] = {{"Q4_K_M", "q4_k"}, {"Q4_0", "q4_0"}, {"Q4_1", "q4_1"}, {"Q8_0", "q8_0"},
              {"Q1_0", "q1_0"},   {"BF16", "bf16"}, {"F16", "f16"},   {"F32", "f32"}};

Result<std::string> choose(const std::string& model, std::vector<std::string> files, const std::string& quant) {
  // One name stands for all parts of a split model.
  std::erase_if(files, [](const std::string& f) { return parts_of(f)[0] != f; });
  if (files.empty()) return make_error(Code::not_found, "the model '" + printable(model) + "' has no GGUF files");
  const auto matching = [&](const std::string& want) {
    std::vector<std::string> out;
    std::copy_if(files.begin(), files.end(), std::back_inserter(out), [&](const auto& f) { return says(f, want); });
    return out;
  };
  std::vector<std::string> found;
  if (!quant.empty()) {
    found = matching(quant);
    if (found.empty())
      return make_error(Code::not_found, "the model '" + printable(model) + "' has no file of '" + printable(quant) +
                                             "'; it has: " + listed(files));
  } else if (files.size() == 1) {
    found = files;
  } else {
    for (const auto& usual : kUsual) {
      if (found.empty() && format_by_name(usual.format) != nullptr) found = matching(usual.quant);
    }
  }
  if (found.size() == 1) return found[0];
  return make_error(Code::invalid, "the model '" + printable(model) + "' has several files that could be meant; give " +
                                       "one as hf:" + printable(model) +
                                       "/FILE: " + listed(found.empty() ? files : found));
}

struct HubName {
  std::string model, file, quant;
};
// OWNER/NAME, OWNER/NAME/FILE or OWNER/NAME:QUANT, with "hf:" in front or not.
std::optional<HubName> name_on_hub(std::string text) {
  const auto word = [](const std::string& part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
    });
  };
  if (text.rfind("hf:", 0) == 0) text.erase(0, 3);
  const size_t first = text.find('/');
  if (first == std::string::npos || !word(text.substr(0, first))) return std::nullopt;
  const size_t end = text.find_first_of("/:", first + 1);
  HubName out;
  out.model = text.substr(0, end);
  if (!word(out.model.substr(first + 1))) return std::nullopt;
  if (end == std::string::npos) return out;
  std::string& rest = text[end] == '/' ? out.file : out.quant;
  rest = text.substr(end + 1);
  const bool good = text[end] == '/' ? !rest.empty() && rest.find(':') == std::string::npos : word(rest);
  return good ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

std::vector<std::string> parts_of(const std::string& path) {
  // "-00002-of-00003.gguf"
  constexpr std::string_view kOf = "-of-", kEnd = ".gguf";
  constexpr size_t kDigits = 5, kTail = 1 + kDigits + kOf.size() + kDigits + kEnd.size();
  if (path.size() <= kTail) return {path};
  const std::string stem = path.substr(0, path.size() - kTail), tail = path.substr(path.size() - kTail);
  const std::string number = tail.substr(1, kDigits), of = tail.substr(1 + kDigits, kOf.size()),
                    count = tail.substr(1 + kDigits + kOf.size(), kDigits);
  const auto digits = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  if (tail[0] != '-' || of != kOf || !tail.ends_with(kEnd) || !digits(number) || !digits(count)) return {path};
  const int parts = std::stoi(count);
  if (parts < 1 || parts > 512) return {path};
  std::vector<std::string> out;
  for (int i = 1; i <= parts; ++i) {
    const std::string plain = std::to_string(i);
    out.push_back(stem + "-" + std::string(kDigits - plain.size(), '0') + plain + "-of-" + count + ".gguf");
  }
  return out;
}

Result<std::vector<Wanted>> resolve_reference(const std::string& reference, const HubOptions& given) {
  HubOptions options = given;
  while (options.hub.ends_with('/')) options.hub.pop_back();
  if (reference.rfind("http://", 0) == 0 || reference.rfind("https://", 0) == 0) {
    const size_t end = std::min(reference.find('?'), reference.find('#'));
    const std::string path = reference.substr(0, end), query = end == std::string::npos ? "" : reference.substr(end);
    if (path.find('/', path.find("//") + 2) == std::string::npos)
      return make_error(Code::invalid, "'" + printable(reference) + "' names no file");
    return all_parts("", path, query);
  }
  auto named = name_on_hub(reference);
  if (!named) {
    return make_error(Code::invalid, "'" + printable(reference) +
                                         "' is no model to pull; give a URL, hf:OWNER/NAME/FILE or OWNER/NAME[:QUANT]");
  }
  auto& [model, file, quant] = *named;
  if (file.empty()) {
    TERN_TRY(std::vector<std::string> files, list_files(model, options));
    TERN_TRY(file, choose(model, std::move(files), quant));
  }
  return all_parts(options.hub + "/" + model + "/resolve/" + encoded(options.revision) + "/", encoded(file), "");
}

Status check_file_name(const std::string& name) {
  const bool plain = !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c >= 0x20 && c != 0x7f && c != '/' && c != '\\';
  });
  if (!plain)
    return make_error(Code::invalid, "'" + printable(name) + "' is no name of a file; `tern pull --name` gives one");
  if (lower(name).ends_with(".gguf")) return ok();
  return make_error(Code::invalid, "'" + printable(name) + "' is no GGUF file by its name; --name gives another");
}

}  // namespace tern::tool
