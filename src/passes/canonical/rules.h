#pragma once

#include "passes/rewrite/rewrite.h"

namespace tern {

std::span<const Rule> scalar_forms();
std::span<const Rule> movement_forms();
std::span<const Rule> matrix_forms();

}  // namespace tern
