// What this process may use of the processor.
#pragma once

#include <string>

namespace tern {

// Physical cores that affinity and the cgroup's quota allow; at least 1. Hyper-threads of one core count once.
unsigned allowed_cores();
// The processor's own name, for cache keys and `tern devices`.
std::string cpu_model();
// One pause of a spin loop.
void cpu_pause();

}  // namespace tern
