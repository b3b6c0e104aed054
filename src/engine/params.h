// Parameters of one compiled program: device buffers in the layouts that lower chose.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/executor.h"
#include "tern/session.h"

namespace tern {

struct Params::Impl {
  std::shared_ptr<const runtime::LoadedProgram> loaded;
  std::vector<std::shared_ptr<hal::Buffer>> buffers;  // per BufferId; null until set
  std::vector<bool> set;                              // per IoId
  uint64_t changes = 0;  // sessions compute anew what hangs on parameters alone when this has moved

  // Packs rows [row, row + rows) of a parameter, given in its file order, into every layout that stores it.
  Status pack_rows(const IoDef& io, const Planes& planes, int64_t row, int64_t rows);
  Status allocate(const IoDef& io);
};

namespace engine {
// Rows (product of all axes but the last) of a constant-shaped value.
Result<int64_t> row_count(const TensorType& type, const std::string& name);
}  // namespace engine

}  // namespace tern
