// Machine code for kernels: opens the LLVM plug-in at run time. The library itself does not link LLVM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/result.h"

namespace tern {

struct CpuTarget {
  std::string triple;        // "aarch64-unknown-linux-gnu"; empty: the machine this runs on
  std::string cpu;           // LLVM's name; empty: the least of the architecture
  std::string features;      // "+avx2,+fma"; empty: what cpu implies
  uint32_t vector_bits = 0;  // widest registers used; 0: the widest the features have
};

// What Caps::isa means to the code generator: "x86-64-v4+avx512vnni" is the processor "x86-64-v4" with one feature
// more, "neon+dotprod" any AArch64 processor with one feature more.
CpuTarget cpu_target(std::string_view isa);

// Thread-safe; copies share the opened library, which stays open until the process ends.
class LlvmCompiler {
 public:
  // path: the plug-in file. Empty: libtern-llvm.so beside the library (or program) that holds this code, then by the
  // loader's own search. Code::not_found names the places looked at; Code::unsupported a plug-in of another version.
  static Result<LlvmCompiler> open(std::string_view path = {});

  // kir: kir/serial.h. Gives a relocatable object that defines `kernel` and needs nothing else.
  Result<std::vector<std::byte>> compile(std::span<const std::byte> kir, const CpuTarget& target) const;
  // The same kernel as LLVM IR or assembly text, for people.
  Result<std::string> text(std::span<const std::byte> kir, const CpuTarget& target, bool assembly) const;

  const std::string& path() const { return path_; }  // of the library, as it was opened
  const CpuTarget& host() const { return host_; }
  // Changes whenever equal requests may give other bytes: belongs into cache keys.
  const std::string& identity() const { return identity_; }

 private:
  LlvmCompiler() = default;
  const void* table_ = nullptr;
  CpuTarget host_;
  std::string identity_, path_;
};

}  // namespace tern
