// HTTP through libcurl, which is opened when it is first needed: linked, its thirty libraries would be loaded at every
// start of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tern/result.h"

namespace tern::tool {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
};
struct HttpReply {
  long status = 0;
  // Lower-case names, of the last answer; where redirects were followed, "x-linked-..." of those before it stay.
  std::map<std::string, std::string, std::less<>> headers;
  std::string url;   // where the redirects led
  bool cut = false;  // the connection ended early, or never came about; asking again may help
  std::string why;   // where cut
  std::string header(std::string_view name) const;
};
// Answers of 200 and 206 go to `body` piece by piece, after `begin` has seen status and headers; either may end the
// transfer with an error, which is returned. Redirects are followed, from https to https only.
using HttpBegin = std::function<Status(const HttpReply& reply)>;
using HttpBody = std::function<Status(std::span<const std::byte> piece)>;
Result<HttpReply> http_get(const HttpRequest& request, const HttpBegin& begin, const HttpBody& body);

}  // namespace tern::tool
