// From kir to what the device loads. Text or SPIR-V where the device takes that; else packs that came with tern, then
// the disk cache, then the code generator, in parallel. What is left stays kir, which the device interprets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/caps.h"
#include "program/program.h"
#include "tern/compile.h"

namespace tern::engine {

struct EmitOptions {
  std::string cache_dir;              // empty: none
  std::string plugin_path, pack_dir;  // as in Options
  unsigned threads = 1;
};

// Replaces every kir kernel of the program by text or SPIR-V, or by an object for caps.isa where there is one. Fills
// the kernel fields of timings; gives each kernel's source.
Result<std::vector<std::optional<KernelSource>>> emit_kernels(Program& program, const Caps& caps,
                                                              const EmitOptions& options, CompileTimings& timings);

}  // namespace tern::engine
