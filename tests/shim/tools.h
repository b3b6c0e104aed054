// Compilers of the languages that kernels are written in, where this machine has them.
#pragma once

#include <span>
#include <string_view>

#include "emit/kernel_text.h"

namespace tern::shim {

struct Tool {
  std::string_view name;  // as TERN_TEST_REQUIRE promises it
  std::string_view language;
  // not_found: the tool is not here, and what would bring it. invalid: what it says, and of which entry.
  Status (*takes)(std::span<const KernelText> texts);
};
// nvrtc (cuda), glslang with spirv-val (glsl), naga and tint (wgsl).
std::span<const Tool> tools();

}  // namespace tern::shim
