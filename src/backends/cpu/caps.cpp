#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>

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

#elif defined(__aarch64__)

std::string host_isa() {
  std::string isa = "neon";
#if defined(__linux__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) {
    isa += "+dotprod";
    if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) isa += "+i8mm";
  }
#endif
  return isa;
}
constexpr std::string_view kPackLevels[] = {"neon", "neon+dotprod", "neon+dotprod+i8mm"};

#else

std::string host_isa() { return "generic"; }
constexpr std::string_view kPackLevels[] = {"generic"};

#endif

// What the first word of caps().isa means.
struct Base {
  std::string_view prefix;
  uint32_t lanes;
  bool fma, bytes;  // bytes: a table of 16 in a register, and products of four with few instructions
};
constexpr Base kBases[] = {
    {"x86-64-v4", 16, true, true}, {"x86-64-v3", 8, true, true}, {"x86-64", 4, false, true},  // from v2 on
    {"neon", 4, true, true},       {"", 4, true, false},
};
// Features that multiply u8 with s8 without saturating.
constexpr std::string_view kWholeBytes[] = {"vnni", "i8mm"};

}  // namespace

std::span<const std::string_view> pack_levels() { return kPackLevels; }

Caps detect_caps(const CpuOptions& options) {
  Caps caps;
  caps.device = "cpu";
  caps.isa = options.isa.empty() ? host_isa() : options.isa;
  const Base& base = *std::find_if(std::begin(kBases), std::end(kBases),
                                   [&](const Base& b) { return caps.isa.starts_with(b.prefix); });
  caps.form = KernelForm::llvm;
  caps.lanes = base.lanes;
  caps.max_lanes = 64;
  caps.workers = options.threads != 0 ? options.threads : allowed_cores();
  caps.workgroup_bytes = 64 * 1024;
  caps.subgroup = {static_cast<uint16_t>(1), static_cast<uint16_t>(64), true};
  caps.dot4 = base.bytes ? Dot4::fast : Dot4::slow;
  const bool whole = std::any_of(std::begin(kWholeBytes), std::end(kWholeBytes),
                                 [&](std::string_view f) { return caps.isa.find(f) != std::string::npos; });
  caps.dot4_code_bits = whole ? 8 : 7;
  caps.byte_lookup = base.bytes;
  caps.lockstep = true;
  caps.f16_storage = true;
  caps.fma = base.fma;
  caps.max_bindings = 64;
  caps.offset_alignment = 4;
  return caps;
}

}  // namespace tern::cpu
