#include "backends/cpu/device.h"
#include "base/cpu.h"

namespace tern::cpu {
namespace {

#if defined(__x86_64__)

std::string host_isa() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")) {
    std::string isa = "x86-64-v4";
    if (__builtin_cpu_supports("avx512vnni")) isa += "+avx512vnni";
    if (__builtin_cpu_supports("avx512bf16")) isa += "+avx512bf16";
    if (__builtin_cpu_supports("avx512vbmi")) isa += "+avx512vbmi";
    return isa;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
    return __builtin_cpu_supports("avxvnni") ? "x86-64-v3+avxvnni" : "x86-64-v3";
  }
  return "x86-64-v2";
}
constexpr std::string_view kPackLevels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v3+avxvnni", "x86-64-v4",
                                            "x86-64-v4+avx512vnni"};

#else

std::string host_isa() { return "generic"; }
constexpr std::string_view kPackLevels[] = {"generic"};

#endif

}  // namespace

std::span<const std::string_view> pack_levels() { return kPackLevels; }

Caps detect_caps(const CpuOptions& options) {
  Caps caps;
  caps.device = "cpu";
  caps.isa = options.isa.empty() ? host_isa() : options.isa;
  const bool v4 = caps.isa.rfind("x86-64-v4", 0) == 0, v3 = caps.isa.rfind("x86-64-v3", 0) == 0;
  const bool arm = caps.isa.rfind("x86-64", 0) != 0;
  caps.form = KernelForm::llvm;
  caps.lanes = v4 ? 16 : v3 ? 8 : 4;
  caps.max_lanes = 64;
  caps.workers = options.threads != 0 ? options.threads : allowed_cores();
  caps.workgroup_bytes = 64 * 1024;
  caps.subgroup = {static_cast<uint16_t>(1), static_cast<uint16_t>(64), true};
  caps.dot4 = arm ? Dot4::slow : Dot4::fast;  // pmaddubsw comes with v2
  caps.dot4_code_bits = caps.isa.find("vnni") != std::string::npos ? 8 : 7;
  caps.byte_lookup = caps.isa.rfind("x86-64", 0) == 0;  // from v2 on
  caps.lockstep = true;
  caps.f16_storage = true;
  caps.fma = v3 || v4 || arm;
  caps.max_bindings = 64;
  caps.offset_alignment = 4;
  return caps;
}

}  // namespace tern::cpu
