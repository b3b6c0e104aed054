// What a test and the runner say to each other, through the runner's standard input and output. Both are little-endian.
//
// A request: WireHead, WireBuffer for each buffer, the dims, WireRange for each range, the object, the contents of the
// buffers. The answer: the length of a sentence that says what went wrong (four bytes) and the sentence, or else zero
// and the contents of the buffers afterwards. The runner ends with its input.
#pragma once

#include <cstdint>

namespace tern::test {

struct WireHead {
  uint32_t object_bytes, buffers, dims, ranges;
};
struct WireBuffer {
  uint32_t bytes;
  uint32_t offset;  // of the address behind a multiple of kWireLine
};
struct WireRange {
  uint32_t first, last;  // groups [first, last)
};

inline constexpr uint32_t kWireLine = 64;

}  // namespace tern::test
