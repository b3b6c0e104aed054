// The CPU as a device: host memory, kernels as machine code, a thread team that walks recorded lists.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "hal/device.h"

namespace tern::cpu {

struct CpuOptions {
  unsigned threads = 0;  // 0: physical cores that affinity and cgroup allow
  std::string isa;  // empty: all this processor has; "x86-64-v3", "x86-64-v2": a lower level, for tests and comparisons
};

// caps().isa is "LEVEL+feature+feature": LEVEL an LLVM CPU name or "neon" (any AArch64 processor), features LLVM
// feature names; code generation takes it as is.
Caps detect_caps(const CpuOptions& options);
// Those of them that kernels are compiled for beforehand: where caps differ, or instructions that kernels live by.
std::span<const std::string_view> pack_levels();
Result<std::unique_ptr<hal::Device>> open_cpu(const CpuOptions& options);
// The same machine behind other caps: the mean device's way in.
Result<std::unique_ptr<hal::Device>> open_cpu_with_caps(const CpuOptions& options, Caps caps);

}  // namespace tern::cpu
