// Ctrl-C ends what is being done, not the program.
#pragma once

#include "tern/session.h"

namespace tern::tool {

// From construction to destruction Ctrl-C cancels the token that is set, or else is waiting at fd() to be taken.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;

  // While set, Ctrl-C cancels it; null: none.
  static void cancels(CancelToken* token);
  // Readable while a Ctrl-C waits to be taken.
  static int fd();
  static bool take();
};

}  // namespace tern::tool
