// The mean device: the CPU behind the caps of the poorest GPU interfaces, so that the suite meets their limits
// everywhere. What it claims it enforces: a list that breaks a limit is a typed error when it is recorded or submitted.
//
// Memory is not host-visible, bindings are at most 1 MiB and 8 in number, offsets are multiples of 256, a buffer that a
// launch writes is never bound read-only in it and writable bindings do not overlap, subgroups have one lane, there is
// no f16 storage and no 64-bit type; transfers and runs happen late, memory ends, and failures can be injected.
#pragma once

#include <atomic>
#include <memory>

#include "hal/device.h"

namespace tern::mean_device {

struct MeanOptions {
  unsigned threads = 1;
  uint64_t memory_limit = uint64_t{1} << 30;
  uint64_t max_binding_bytes = uint64_t{1} << 20;
  uint32_t max_bindings = 8;
  uint64_t max_groups = 65535;  // in one dimension of a grid; linear groups are folded into two
  unsigned delay_us = 50;       // everything queued starts this long after its turn has come
  // Fails the n-th allocation, kernel load or submission (1 is the next); 0: never. Shared, so that a test can set it
  // later.
  struct Failures {
    std::atomic<int> allocation{0}, load{0}, submission{0};
  };
  std::shared_ptr<Failures> failures;
};

Result<std::unique_ptr<hal::Device>> open_mean(const MeanOptions& options);

}  // namespace tern::mean_device
