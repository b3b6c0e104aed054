// A list of a Program as devices record it: every size is a constant, or a place in the block of sizes.
#pragma once

#include <string>
#include <vector>

#include "hal/device.h"

namespace tern::hal {

struct Number {
  int64_t constant = 0;
  int32_t block = -1;  // index in Program::block; -1: constant
  int64_t value(std::span<const int64_t> values) const {
    return block < 0 ? constant : values[static_cast<size_t>(block)];
  }
};
struct RecordedUse {
  BufferId buffer = kNone;
  Number offset, bytes;
};
struct RecordedStep {
  enum class Kind : uint8_t { launch, copy, fill } kind = Kind::launch;
  uint32_t step = 0, phase = 0;
  uint32_t word = 0;        // fill
  KernelId kernel = kNone;  // launch
  Number groups;            // launch
  std::vector<Number> scalars;
  std::vector<RecordedUse> uses;
};
// kernels: how many the device has of the program. An error names what no device records: `device` is one in words.
Result<std::vector<RecordedStep>> record_steps(const Program& program, uint32_t list, size_t kernels,
                                               std::string_view device);

// A use at the sizes and slots of one run.
struct Placed {
  Buffer* buffer = nullptr;
  uint64_t offset = 0, bytes = 0;
};
Result<Placed> place(const RecordedUse& use, const Binding& binding);
// No two buffers have the same: addresses and handles come again. Thread-safe.
uint64_t fresh_serial();
// Code::limit where they do not fit 32 bits.
Result<uint32_t> groups_of(const Number& groups, std::span<const int64_t> block);
Result<uint32_t> scalar_word(const Number& scalar, std::span<const int64_t> block);

}  // namespace tern::hal
