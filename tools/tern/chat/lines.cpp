#include "tools/tern/chat/lines.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/utf8.h"
#include "tools/tern/chat/interrupt.h"
#include "tools/tern/common/report.h"

namespace tern::tool {
namespace {

enum class Got { byte, end, interrupt };

// The next byte of stdin, or Ctrl-C, whatever comes first.
Got next_byte(char& byte) {
  for (;;) {
    struct pollfd from[2] = {{STDIN_FILENO, POLLIN, 0}, {Interrupts::fd(), POLLIN, 0}};
    if (poll(from, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return Got::end;
    }
    if (Interrupts::take()) return Got::interrupt;
    if (from[0].revents == 0) continue;
    const ssize_t n = read(STDIN_FILENO, &byte, 1);
    if (n == 1) return Got::byte;
    if (n == 0 || (errno != EINTR && errno != EAGAIN)) return Got::end;
  }
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

wchar_t* prompt(EditLine*) {
  static wchar_t text[] = L"> ";
  return text;
}

}  // namespace

struct Lines::Impl {
  EditLine* edit = nullptr;
  HistoryW* history = nullptr;
  std::string history_file, held;  // held: bytes of a character that is not whole yet
  bool interrupted = false;

  // What the editor reads instead of stdin, so that Ctrl-C ends the line. 1: a character, 0: the end, -1: Ctrl-C.
  static int get(EditLine* edit, wchar_t* out) {
    Impl* self = nullptr;
    el_wget(edit, EL_CLIENTDATA, &self);
    for (;;) {
      char byte = 0;
      switch (next_byte(byte)) {
        case Got::end: return 0;
        case Got::interrupt: self->interrupted = true; return -1;
        case Got::byte: break;
      }
      self->held += byte;
      const auto first = static_cast<unsigned char>(self->held[0]);
      const size_t want = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
      if (self->held.size() < want && (static_cast<unsigned char>(byte) & 0xc0) != 0x80 && self->held.size() > 1)
        self->held.resize(want);  // broken off: one U+FFFD
      if (self->held.size() < want) continue;
      *out = decode(self->held);
      self->held.clear();
      return 1;
    }
  }
  static wchar_t decode(const std::string& bytes) {
    const size_t n = utf8_sequence(bytes);
    if (n == 0) return 0xfffd;
    const auto at = [&](size_t i) { return static_cast<wchar_t>(static_cast<unsigned char>(bytes[i])); };
    if (n == 1) return at(0);
    wchar_t c = at(0) & (0xff >> (n + 1));
    for (size_t i = 1; i < n; ++i) c = (c << 6) | (at(i) & 0x3f);
    return c;
  }

  void open_editor() {
    // The editor measures and prints characters through the locale.
    std::setlocale(LC_CTYPE, "");
    if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
    edit = el_init("tern", stdin, stdout, stderr);
    if (edit == nullptr) return;
    el_wset(edit, EL_CLIENTDATA, this);
    el_wset(edit, EL_PROMPT, &prompt);
    el_wset(edit, EL_EDITOR, L"emacs");
    el_wset(edit, EL_GETCFN, &get);
    history = history_winit();
    if (history == nullptr) return;
    HistEventW event;
    history_w(history, &event, H_SETSIZE, 1000);
    history_w(history, &event, H_SETUNIQUE, 1);
    if (!history_file.empty()) history_w(history, &event, H_LOAD, history_file.c_str());
    el_wset(edit, EL_HIST, history_w, history);
  }
  void close_editor() {
    HistEventW event;
    if (history != nullptr && !history_file.empty()) {
      std::error_code ignored;  // a history that cannot be kept is no reason to complain
      std::filesystem::create_directories(std::filesystem::path(history_file).parent_path(), ignored);
      history_w(history, &event, H_SAVE, history_file.c_str());
    }
    if (edit != nullptr) el_end(edit);
    if (history != nullptr) history_wend(history);
  }

  Event typed(std::string& line) {
    int count = 0;
    interrupted = false;
    held.clear();
    // Before the prompt shows: by itself the editor takes the terminal over only when it reads, and what is typed in
    // between would be edited by the terminal.
    el_wset(edit, EL_PREP_TERM, 1);
    const wchar_t* text = el_wgets(edit, &count);
    if (interrupted) {
      std::fputc('\n', stdout);
      return Event::interrupt;
    }
    if (text == nullptr || count <= 0) return Event::end;
    for (int i = 0; i < count; ++i) append_utf8(line, static_cast<char32_t>(text[i]));
    if (!line.empty() && line.back() == '\n') line.pop_back();
    HistEventW event;
    if (history != nullptr && line.find_first_not_of(' ') != std::string::npos)
      history_w(history, &event, H_ENTER, text);
    return Event::line;
  }
  static Event piped(std::string& line) {
    for (;;) {
      char byte = 0;
      switch (next_byte(byte)) {
        case Got::interrupt: return Event::interrupt;
        case Got::end: return line.empty() ? Event::end : Event::line;
        case Got::byte: break;
      }
      if (byte == '\n') return Event::line;
      line += byte;
    }
  }
};

Lines::Lines(std::string history) : impl_(std::make_unique<Impl>()) {
  impl_->history_file = std::move(history);
  if (stdin_is_terminal() && stdout_is_terminal()) impl_->open_editor();
}
Lines::~Lines() { impl_->close_editor(); }
bool Lines::interactive() const { return impl_->edit != nullptr; }
Lines::Event Lines::next(std::string& line) {
  line.clear();
  return interactive() ? impl_->typed(line) : Impl::piped(line);
}

}  // namespace tern::tool
