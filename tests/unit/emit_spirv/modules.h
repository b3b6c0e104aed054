// Modules of kernels, for tests.
#pragma once

#include <gtest/gtest.h>

#include "emit/kernel_spirv.h"
#include "unit/emit_text/cases.h"

namespace tern::test {

// What devices differ in.
inline Caps spirv_caps() {
  Caps caps;
  caps.device = "vulkan";
  caps.form = KernelForm::spirv;
  caps.language = "spirv";
  caps.lanes = 8;
  caps.max_lanes = 64;
  caps.subgroup = {8, 8, false};
  caps.dot4_code_bits = 8;
  caps.fma = false;
  return caps;
}
inline Caps poor(Caps caps) {
  caps.language = "spirv";
  caps.subgroup = {1, 1, false};
  caps.f16_storage = caps.byte_storage = caps.i64 = caps.f64 = false;
  return caps;
}

}  // namespace tern::test
