// How launches declare their bindings where a device forbids mixed access.
#pragma once

#include "program/program.h"

namespace tern::lowering {

// A buffer that a launch writes is bound read-write throughout that launch: the kernel's signature says so, and whoever
// turns the kernel into code follows the signature. Uses keep what is really read and written, since hazards follow
// from them. All temporaries lie in one arena and count as one buffer.
void bind_mixed_read_write(Program& program);

}  // namespace tern::lowering
