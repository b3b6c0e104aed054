#pragma once

#include "passes/rewrite/rewrite.h"

namespace tern {

std::span<const Rule> scalar_identities();
std::span<const Rule> movement_identities();  // views and copies that change nothing

}  // namespace tern
