// From one kernel to bytes: machine, passes, object.
#pragma once

#include <string>

#include "kir/ir.h"

namespace tern::emit {

enum class Want { object, ir, assembly };

struct Request {
  std::string triple, cpu, features;
  uint32_t vector_bits = 0;
  Want want = Want::object;
};

// False: out is one sentence that says why not.
bool generate(const kir::Kernel& kernel, const Request& request, std::string* out);

}  // namespace tern::emit
