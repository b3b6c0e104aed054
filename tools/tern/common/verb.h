// What a verb is to the program: a function that adds its options and returns what to do once they are parsed.
#pragma once

#include <functional>

#include "tools/tern/flags/command_line.h"

namespace tern::tool {

// The exit codes are a contract with scripts.
enum Exit : int {
  kFine = 0,
  kWrongUse = 1,     // options that make no sense
  kBadInput = 2,     // a file, prompt or template that cannot be used
  kNoResource = 3,   // memory, a device or its driver
  kCheckFailed = 4,  // verify found a deviation above its bound
};

using Action = std::function<int()>;

}  // namespace tern::tool
