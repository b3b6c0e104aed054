// What kernels are called in what is written of them.
#pragma once

#include <string>

#include "kir/ir.h"

namespace tern::emit {

// The kernel's name as an identifier, and its hash: unequal kernels have unequal entries.
std::string entry_name(const kir::Kernel& kernel);

}  // namespace tern::emit
