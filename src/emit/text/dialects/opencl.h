// What both forms of OpenCL C share.
#pragma once

#include "emit/text/writer.h"

namespace tern::emit {

std::string opencl_number(kir::Type type, uint64_t bits);
// A kernel's arguments, as declared and as passed on, and pointers moved to where bindings begin: a buffer of OpenCL
// has no window.
struct OpenclArguments {
  std::string declared, passed, moved;
};
OpenclArguments opencl_arguments(const Writer& w);

extern const std::string_view kOpenclHalf;  // what single halves need

}  // namespace tern::emit
