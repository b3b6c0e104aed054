#include "tools/tern/chat/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace tern::tool {
namespace {

std::atomic<CancelToken*> running{nullptr};
int wake[2] = {-1, -1};

// Any thread may be the one that the signal reaches, so waiting is woken through a pipe.
void on_interrupt(int) {
  const int saved = errno;
  if (CancelToken* token = running.load()) {
    token->cancel();
  } else {
    (void)!write(wake[1], "", 1);
  }
  errno = saved;
}

}  // namespace

Interrupts::Interrupts() {
  if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) wake[0] = wake[1] = -1;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

Interrupts::~Interrupts() {
  std::signal(SIGINT, SIG_DFL);
  for (int& end : wake) {
    if (end >= 0) close(end);
    end = -1;
  }
}

void Interrupts::cancels(CancelToken* token) { running = token; }
int Interrupts::fd() { return wake[0]; }
bool Interrupts::take() {
  char bytes[64];
  bool any = false;
  while (read(wake[0], bytes, sizeof bytes) > 0) any = true;
  return any;
}

}  // namespace tern::tool
