// From kir to what the device loads: disk cache first, the code generator for the rest, in parallel.
#pragma once

#include <string>

#include "core/caps.h"
#include "program/program.h"
#include "tern/compile.h"

namespace tern::engine {

struct EmitOptions {
  std::string cache_dir;  // empty: none
  std::string plugin_path;
  unsigned threads = 1;
};

// Replaces every kir kernel of the program by an object for caps.isa. Fills the kernel fields of timings.
Status emit_kernels(Program& program, const Caps& caps, const EmitOptions& options, CompileTimings& timings);

}  // namespace tern::engine
