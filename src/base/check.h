// TERN_CHECK: the place where tern's own faults stop. Never used on anything a user or a file can cause.
#pragma once

#include <string>

namespace tern {
[[noreturn]] void check_failed(const char* file, int line, const char* expression, const std::string& text);
}  // namespace tern

#define TERN_CHECK(cond, ...)                                                      \
  do {                                                                             \
    if (!(cond)) [[unlikely]]                                                      \
      ::tern::check_failed(__FILE__, __LINE__, #cond, ::std::string{__VA_ARGS__}); \
  } while (0)
