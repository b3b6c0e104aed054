#include "tern/result.h"

namespace tern {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::invalid: return "invalid";
    case Code::malformed: return "malformed";
    case Code::unsupported: return "unsupported";
    case Code::not_found: return "not_found";
    case Code::out_of_memory: return "out_of_memory";
    case Code::device_lost: return "device_lost";
    case Code::io: return "io";
    case Code::cancelled: return "cancelled";
    case Code::limit: return "limit";
    case Code::internal: return "internal";
  }
  return "internal";
}

std::string Error::message() const { return where.empty() ? text : text + " (" + where + ")"; }

}  // namespace tern
