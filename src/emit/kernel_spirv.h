// Kernels as SPIR-V modules, for Vulkan: an invocation is a lane.
//
// A module has one entry point. Its bindings are storage buffers of set 0, in the kernel's order. Push constants are
// words: the number of the first group of the dispatch, then the kernel's dims. With `texels`, bindings that are only
// read are buffers of texels of unsigned words in set 1, at binding * 8 + the logarithm of a texel's bytes (4, 8 or
// 16).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/caps.h"
#include "kir/ir.h"

namespace tern {

struct KernelSpirv {
  std::vector<uint32_t> words;
  std::string entry;         // unequal kernels have unequal ones
  uint32_t invocations = 1;  // of a workgroup
};

// Version 1.3. caps.language is "spirv", and behind it what the driver takes beyond that version, each with a plus:
//   float_controls  keeping of signed zeros, infinities and NaN, in 32 bits
//   integer_dot     products of packed bytes; else dot4 is written out
//   texels          fetches instead of loads from storage buffers, which some drivers for processors do lane by lane;
//                   what is fetched alike in all lanes is fetched side by side and handed round the subgroup. Wants
//                   reads past a binding's end to be harmless
// Pure: equal kernels and caps give equal words on every host. Expects a kernel that verify() took for these caps.
// Code::unsupported, with the op, for what SPIR-V cannot say. Thread-safe.
Result<KernelSpirv> emit_spirv(const kir::Kernel& kernel, const Caps& caps);

}  // namespace tern
