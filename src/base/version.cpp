#include "base/version.h"

namespace tern {

std::string_view version() { return TERN_VERSION; }

}  // namespace tern
