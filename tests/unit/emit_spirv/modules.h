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
  const bool nan_stays = caps.language.find("+float_controls") != std::string::npos;
  caps.language = nan_stays ? "spirv+float_controls" : "spirv";
  caps.subgroup = {1, 1, false};
  caps.f16_storage = caps.byte_storage = caps.i64 = caps.f64 = false;
  return caps;
}

// Ten words of x that are equal in all lanes, past the last of which x ends.
inline TextCase alike_case(const Caps& caps) {
  using namespace kir;
  B b("alike", 32, caps);
  Buffer x = buffer("x", f32), y = buffer("y", f32, write);
  V sum = cast(f32, lane());
  for (int i = 0; i < 10; ++i) sum = sum + x[group() * 10 + i] * static_cast<float>(i + 1);
  y.store(group() * 32 + lane(), sum);
  const auto kernel = b.finish();
  EXPECT_TRUE(kernel.ok());
  constexpr uint32_t kAlike = 3;
  std::vector<float> in(kAlike * 10);
  Random r(9);
  for (float& v : in) v = r.real();
  return {"alike", *kernel, {bytes_of(in), std::vector<std::byte>(kAlike * 32 * 4)}, {}, kAlike};
}

}  // namespace tern::test
