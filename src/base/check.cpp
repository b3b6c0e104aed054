#include "base/check.h"

#include <cstdio>
#include <exception>

namespace tern {

void check_failed(const char* file, int line, const char* expression, const std::string& text) {
  std::fprintf(stderr, "tern: internal fault at %s:%d: %s %s\n", file, line, expression, text.c_str());
  std::terminate();
}

}  // namespace tern
