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
};

}  // namespace tern
