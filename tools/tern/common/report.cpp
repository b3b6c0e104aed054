#include "tools/tern/common/report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tern::tool {
namespace {

using Clock = std::chrono::steady_clock;
const Clock::time_point kStart = Clock::now();

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

std::string format(const char* pattern, double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value, unit);
  return text;
}

}  // namespace

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) != 0; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }
bool stdin_is_terminal() { return isatty(STDIN_FILENO) != 0; }

void complain(std::string_view text) {
  std::string line = "tern: ";
  for (const char c : text) line += is_control(static_cast<unsigned char>(c)) ? ' ' : c;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int wrong_use(std::string_view text) {
  complain(text);
  return kWrongUse;
}

int exit_code(Code code) {
  switch (code) {
    case Code::invalid: return kWrongUse;
    case Code::malformed:
    case Code::unsupported:
    case Code::not_found:
    case Code::io:
    case Code::limit: return kBadInput;
    case Code::cancelled: return kFine;
    case Code::out_of_memory:
    case Code::device_lost:
    case Code::internal: return kNoResource;
  }
  return kNoResource;
}

int fail(const Error& error) {
  complain(error.message());
  return exit_code(error.code);
}

double seconds_since_start() { return std::chrono::duration<double>(Clock::now() - kStart).count(); }

std::string terminal_safe(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // C1 controls are C2 80 .. C2 9F in UTF-8.
    const bool c1 = c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1 || (is_control(c) && c != '\n' && c != '\t')) {
      out += "\xef\xbf\xbd";
      i += c1 ? 1 : 0;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string human_bytes(double bytes) {
  if (bytes < 1024) return format("%.0f %s", bytes, "B");
  if (bytes < 1024.0 * 1024) return format("%.1f %s", bytes / 1024, "KiB");
  if (bytes < 1024.0 * 1024 * 1024) return format("%.1f %s", bytes / (1024.0 * 1024), "MiB");
  return format("%.2f %s", bytes / (1024.0 * 1024 * 1024), "GiB");
}

std::string human_count(double count) {
  if (count < 1e3) return format("%.0f%s", count, "");
  if (count < 1e6) return format("%.1f %s", count / 1e3, "k");
  if (count < 1e9) return format("%.1f %s", count / 1e6, "M");
  return format("%.2f %s", count / 1e9, "G");
}

void ProgressLine::update(uint64_t done, uint64_t total) {
  if (!stderr_is_terminal() || total == 0) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (shown_ && now - last_ < std::chrono::milliseconds(50)) return;
  last_ = now;
  shown_ = true;
  std::fprintf(stderr, "\r%s %3.0f%%", what_.c_str(),
               100.0 * static_cast<double>(std::min(done, total)) / static_cast<double>(total));
  std::fflush(stderr);
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  if (!shown_) return;
  shown_ = false;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace tern::tool
