// A kernel as text, for people and golden files; there is no parser (serial.h is the exchange form).
#pragma once

#include <string>

#include "kir/ir.h"

namespace tern::kir {

// Deterministic. Leaves are written in place; values are numbered in the order of their statements.
std::string print(const Kernel& kernel);

}  // namespace tern::kir
