// What a backend says of a device before it is opened.
#pragma once

#include <cstdint>
#include <string>

namespace tern::hal {

struct Description {
  std::string text;
  unsigned workers = 0;
  uint64_t memory = 0;  // bytes
};

}  // namespace tern::hal
