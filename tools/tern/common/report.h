// How the program speaks: results to stdout, everything else to stderr, decoration on terminals only.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "tern/result.h"
#include "tools/tern/common/verb.h"

namespace tern::tool {

bool stdout_is_terminal();
bool stderr_is_terminal();
bool stdin_is_terminal();

// "tern: text" on stderr, one line whatever the text holds.
void complain(std::string_view text);
int wrong_use(std::string_view text);
// Complains and gives the exit code that the error's kind asks for.
int fail(const Error& error);
int exit_code(Code code);

// Since the program started.
double seconds_since_start();

// Text of unknown origin, safe on a terminal: control characters other than newline and tab become U+FFFD.
std::string terminal_safe(std::string_view text);

std::string human_bytes(double bytes);
std::string human_count(double count);

// A line that counts up on a terminal and is wiped when done; silent in a pipe. Thread-safe.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what) : what_(std::move(what)) {}
  ProgressLine(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }
  void update(uint64_t done, uint64_t total);
  void clear();

 private:
  std::string what_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point last_{};
  bool shown_ = false;
};

}  // namespace tern::tool
