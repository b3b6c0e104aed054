// The authored kernels: candidates over Problems, in the order that breaks ties. They know code classes and layouts,
// never format names. Thread-safe; a build writes through its BuildCtx only.
#pragma once

#include <span>

#include "program/candidate.h"

namespace tern {

std::span<const Candidate> kernel_candidates();

}  // namespace tern
