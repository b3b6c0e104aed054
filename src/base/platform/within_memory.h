// Where the standard library throws because memory has ended, and callers want an Error.
#pragma once

#include <new>

#include "tern/result.h"

namespace tern {

inline Error memory_ended() { return make_error(Code::out_of_memory, "memory is exhausted"); }

// f(), a Status or Result, or memory_ended(): around work on threads of our own.
template <class F>
auto within_memory(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return memory_ended();
  }
}

}  // namespace tern
