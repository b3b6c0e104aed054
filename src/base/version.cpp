#include "base/version.h"

namespace tern {

std::string_view version() { return TERN_VERSION; }
std::string_view compiler() { return TERN_COMPILER; }

}  // namespace tern
