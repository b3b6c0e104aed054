// Lines that a person types, with editing and history on a terminal, or that come through a pipe; and Ctrl-C.
#pragma once

#include <memory>
#include <string>

namespace tern::tool {

// One at a time: signals belong to the process.
class Lines {
 public:
  enum class Event { line, end, interrupt };

  // history: file of earlier lines, read now and written at the end; empty: none.
  explicit Lines(std::string history);
  ~Lines();
  Lines(const Lines&) = delete;

  bool interactive() const;
  // Waits for a line, without its end. interrupt: Ctrl-C came instead.
  Event next(std::string& line);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern::tool
