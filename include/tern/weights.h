// Where weights come from: the importer's side of Params::load.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/format.h"
#include "tern/result.h"
#include "tern/tensor.h"

namespace tern {

struct WeightInfo {
  std::string name;
  TensorType type;    // constant shape, row-major (GGUF's ne reversed)
  std::string where;  // "blk.0.attn_q.weight @0x1f40", for errors
  uint64_t bytes = 0;
};

// Thread-safe for reading: packing runs in parallel.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const std::vector<WeightInfo>& weights() const = 0;
  virtual const WeightInfo* find(std::string_view name) const = 0;
  virtual Result<Planes> planes(const WeightInfo& weight) const = 0;
  virtual void drop(const WeightInfo& weight, uint64_t first_byte,
                    uint64_t bytes) const = 0;  // pages behind the reader are not needed again
};

}  // namespace tern
