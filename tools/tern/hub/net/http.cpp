#include "tools/tern/hub/net/http.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>

#include "base/utf8.h"

namespace tern::tool {
namespace {

// The functions that are used, under their own names.
struct Curl {
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
};

Result<Curl> open_curl() {
  void* library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return make_error(Code::device_lost,
                      std::string("libcurl cannot be opened; install it (Debian: libcurl4): ") + dlerror());
  Curl curl{};
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    all = all && function != nullptr;
  };
  decltype(&::curl_global_init) global_init = nullptr;
  find(global_init, "curl_global_init");
  find(curl.easy_init, "curl_easy_init");
  find(curl.easy_setopt, "curl_easy_setopt");
  find(curl.easy_perform, "curl_easy_perform");
  find(curl.easy_getinfo, "curl_easy_getinfo");
  find(curl.easy_cleanup, "curl_easy_cleanup");
  find(curl.easy_strerror, "curl_easy_strerror");
  find(curl.slist_append, "curl_slist_append");
  find(curl.slist_free_all, "curl_slist_free_all");
  if (!all || global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return make_error(Code::device_lost, "the libcurl of this system lacks functions");
  return curl;
}

struct Transfer {
  const Curl& curl;
  CURL* handle;
  const HttpBegin& begin;
  const HttpBody& body;
  HttpReply reply;
  std::optional<Error> error;
  bool begun = false;
};

bool wanted(long status) { return status == 200 || status == 206; }

size_t on_header(char* data, size_t, size_t bytes, void* user) {
  auto& t = *static_cast<Transfer*>(user);
  std::string_view line(data, bytes);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.rfind("HTTP/", 0) == 0) {  // another answer begins; what the hub said of the file stays
    std::erase_if(t.reply.headers, [](const auto& h) { return h.first.rfind("x-linked-", 0) != 0; });
    return bytes;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bytes;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  t.reply.headers[std::move(name)] = std::string(value);
  return bytes;
}

// 0 ends the transfer.
size_t on_body(char* data, size_t, size_t bytes, void* user) {
  auto& t = *static_cast<Transfer*>(user);
  t.curl.easy_getinfo(t.handle, CURLINFO_RESPONSE_CODE, &t.reply.status);
  if (!wanted(t.reply.status)) return bytes;  // a page that explains an error
  if (!t.begun) {
    t.begun = true;
    if (Status status = t.begin(t.reply); !status) {
      t.error = status.take_error();
      return 0;
    }
  }
  if (Status status = t.body(std::as_bytes(std::span(data, bytes))); !status) {
    t.error = status.take_error();
    return 0;
  }
  return bytes;
}

// What a later attempt may mend.
bool passes(CURLcode code) {
  switch (code) {
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
  }
}

// Whether this libcurl knows them all: one that does not know how to keep to http would open files, too.
bool set_options(Transfer& t, const HttpRequest& request, curl_slist* headers) {
  bool all = true;
  const auto set = [&](CURLoption option, auto value) {
    all = t.curl.easy_setopt(t.handle, option, value) == CURLE_OK && all;
  };
  const bool secure = request.url.rfind("https://", 0) == 0;
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_USERAGENT, "tern/" TERN_VERSION);
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&t));
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&t));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, 30L);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);  // bytes a second
  set(CURLOPT_LOW_SPEED_TIME, 30L);
  return all;
}

}  // namespace

std::string HttpReply::header(std::string_view name) const {
  const auto at = headers.find(name);
  return at != headers.end() ? at->second : std::string();
}

Result<HttpReply> http_get(const HttpRequest& request, const HttpBegin& begin, const HttpBody& body) {
  static const Result<Curl> curl = open_curl();
  if (!curl) return Error(curl.error());
  const std::unique_ptr<CURL, decltype(curl->easy_cleanup)> handle(curl->easy_init(), curl->easy_cleanup);
  if (!handle) return make_error(Code::device_lost, "libcurl gives no connection");
  std::unique_ptr<curl_slist, decltype(curl->slist_free_all)> headers(nullptr, curl->slist_free_all);
  for (const std::string& h : request.headers) headers.reset(curl->slist_append(headers.release(), h.c_str()));
  Transfer t{*curl, handle.get(), begin, body, {}, {}, false};
  if (!set_options(t, request, headers.get()))
    return make_error(Code::device_lost, "the libcurl of this system is older than version 7.85");
  const CURLcode code = curl->easy_perform(handle.get());
  curl->easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &t.reply.status);
  const char* where = nullptr;
  if (curl->easy_getinfo(handle.get(), CURLINFO_EFFECTIVE_URL, &where) == CURLE_OK && where != nullptr)
    t.reply.url = where;
  if (t.error) return std::move(*t.error);
  if (code == CURLE_OK) {
    if (!t.begun && wanted(t.reply.status)) TERN_OK(begin(t.reply));  // an answer without a body
    return std::move(t.reply);
  }
  if (!passes(code))
    return make_error(Code::io, printable(request.url, 500) + " cannot be read: " + curl->easy_strerror(code));
  t.reply.cut = true;
  t.reply.why = curl->easy_strerror(code);
  return std::move(t.reply);
}

}  // namespace tern::tool
