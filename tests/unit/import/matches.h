// Case-insensitive search of a regular expression, as the manifest's patterns mean it. POSIX's: <regex> costs seconds
// to compile and warns under sanitizers.
#pragma once

#include <gtest/gtest.h>
#include <regex.h>

#include <string>

namespace tern {

inline bool matches(const std::string& text, const std::string& pattern) {
  regex_t compiled;
  if (::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0) {
    ADD_FAILURE() << "bad pattern " << pattern;
    return false;
  }
  const bool found = ::regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  ::regfree(&compiled);
  return found;
}

}  // namespace tern
