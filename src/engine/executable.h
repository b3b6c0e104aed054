#pragma once

#include "engine/params.h"
#include "runtime/executor.h"
#include "tern/compile.h"

namespace tern {

struct Executable::Impl {
  std::shared_ptr<const runtime::LoadedProgram> loaded;
  Device device;
  std::vector<IoInfo> io;
  CompileTimings timings;
  std::vector<std::optional<KernelSource>> sources;  // by kernel
};

namespace engine {
// What a session of the program will hold, by the program alone.
Result<MemoryNeed> memory_need(const runtime::LoadedProgram& loaded);
}  // namespace engine

}  // namespace tern
