// The language `cpp` needs no words but those of C++.
#pragma once

#define TERN_SHIM_MODULE
#include "host.h"
