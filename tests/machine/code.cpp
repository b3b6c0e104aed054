#include "machine/code.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "kir/ir.h"
#include "machine/levels.h"

extern char** environ;

namespace tern::test {

namespace {

// One process for each processor that is emulated; it ends with the test.
class Runner {
 public:
  explicit Runner(const std::string& machine) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    const char* arguments[] = {TERN_TEST_EMULATOR, "-cpu", machine.c_str(), TERN_TEST_RUNNER, nullptr};
    if (posix_spawn(&process_, TERN_TEST_EMULATOR, &actions, nullptr, const_cast<char**>(arguments), environ) != 0)
      process_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    socket_ = ends[0];
  }
  ~Runner() { end(); }
  Runner(const Runner&) = delete;

  bool alive() const { return process_ > 0; }
  Status ask(const std::vector<std::byte>& request, std::span<const LoadedCode::Memory> memory) {
    if (process_ < 0) return make_error(Code::io, "the emulator does not run");
    uint32_t length = 0;
    if (!send_all(request) || !receive(&length, sizeof length)) return make_error(Code::io, end());
    if (length > 0) {
      std::string text(length, ' ');
      if (!receive(text.data(), length)) return make_error(Code::io, end());
      return make_error(Code::malformed, text);
    }
    std::vector<std::byte> unchanged;
    for (const LoadedCode::Memory& m : memory) {
      unchanged.resize(m.written ? 0 : m.bytes);
      if (!receive(m.written ? m.data : unchanged.data(), m.bytes)) return make_error(Code::io, end());
    }
    return ok();
  }

 private:
  // How it ended, in words.
  std::string end() {
    if (process_ < 0) return "the emulator does not run";
    close(socket_);
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFSIGNALED(status) ? "the kernel ended the runner by signal " + std::to_string(WTERMSIG(status))
                               : "the runner ended with " + std::to_string(WEXITSTATUS(status));
  }
  bool send_all(std::span<const std::byte> data) {
    while (!data.empty()) {
      const ssize_t n = send(socket_, data.data(), data.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      data = data.subspan(static_cast<size_t>(n));
    }
    return true;
  }
  bool receive(void* to, size_t bytes) {
    auto* at = static_cast<std::byte*>(to);
    while (bytes > 0) {
      const ssize_t n = recv(socket_, at, bytes, 0);
      if (n <= 0) return false;
      at += n, bytes -= static_cast<size_t>(n);
    }
    return true;
  }

  pid_t process_ = -1;
  int socket_ = -1;
};

Runner& runner_of(const std::string& isa) {
  static std::map<std::string, std::unique_ptr<Runner>> all;
  const std::string machine(level_of(isa).machine);
  auto& runner = all[machine];
  if (!runner || !runner->alive()) runner = std::make_unique<Runner>(machine);
  return *runner;
}

template <class T>
void append(std::vector<std::byte>& out, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

Result<LoadedCode> LoadedCode::load(std::vector<std::byte> object, const std::string& isa) {
  LoadedCode out;
  out.isa_ = isa;
  if (runs_on_this_processor(isa)) {
    TERN_TRY(out.loaded_, cpu::load_object(object));
    TERN_OK(out.loaded_->symbol("kernel"));
  } else {
    out.object_ = std::move(object);
  }
  return out;
}

Status LoadedCode::run(std::span<const Memory> memory, std::span<const uint32_t> dims,
                       std::span<const WireRange> ranges) const {
  if (loaded_) {
    TERN_TRY(void* symbol, loaded_->symbol("kernel"));
    std::vector<void*> pointers;
    for (const Memory& m : memory) pointers.push_back(m.data);
    for (const WireRange& r : ranges)
      reinterpret_cast<kir::CpuEntry>(symbol)(pointers.data(), dims.data(), r.first, r.last);
    return ok();
  }
  const auto count = [](const auto& v) { return static_cast<uint32_t>(v.size()); };
  const WireHead head{count(object_), count(memory), count(dims), count(ranges)};
  std::vector<std::byte> request;
  append(request, std::span(&head, 1));
  for (const Memory& m : memory) {
    const WireBuffer b{static_cast<uint32_t>(m.bytes),
                       static_cast<uint32_t>(reinterpret_cast<uintptr_t>(m.data) % kWireLine)};
    append(request, std::span(&b, 1));
  }
  append(request, dims);
  append(request, ranges);
  append(request, std::span(std::as_const(object_)));
  for (const Memory& m : memory) append(request, std::span(static_cast<const std::byte*>(m.data), m.bytes));
  return runner_of(isa_).ask(request, memory);
}

}  // namespace tern::test
