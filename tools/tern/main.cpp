// The program: picks the verb, turns mistakes of use into exit code 1 and one line.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include "tools/tern/common/report.h"
#include "tools/tern/common/verb.h"
#include "tools/tern/flags/command_line.h"

namespace tern::tool {

#define TERN_VERB(name, summary) Action add_##name(CommandLine& line);
#include "tools/tern/verb_list.inc"
#undef TERN_VERB

namespace {

struct Verb {
  const char* name;
  const char* summary;
  Action (*add)(CommandLine& line);
};
constexpr Verb kVerbs[] = {
#define TERN_VERB(name, summary) {#name, summary, &add_##name},
#include "tools/tern/verb_list.inc"
#undef TERN_VERB
};

// A stream that was closed would give its number to the next file that is opened, and what is written for people would
// go there. Opened the wrong way round, it fails as a closed one does.
void keep_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its writer, as a full disk is
}

// Buffered output that failed on the way shows in ferror only.
int written(int code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return code;
  complain("the output could not be written");
  return code == kFine ? static_cast<int>(kNoResource) : code;
}

// The standard library throws where memory ends; everything else comes back as a Result.
int act(const Action& action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    complain("memory is exhausted; give a smaller --ctx, or more memory");
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return kNoResource;
}

int main_of(int argc, char** argv) {
  keep_standard_streams();
  CLI::App app("tern compiles a model once and runs it on any device.", "tern");
  app.set_version_flag("--version", "tern " TERN_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  tern run model.gguf --chat -p \"Why is the sky blue?\"\n  tern info model.gguf\n  tern <verb> "
      "--help");
  Action action;
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    CommandLine line(*sub);
    sub->callback([&action, run = verb.add(line)] { action = run; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return written(app.exit(done));
  } catch (const CLI::Error& error) {
    return wrong_use(std::string(error.what()) + "; `tern --help` and `tern VERB --help` tell more");
  }
  return written(act(action));
}

}  // namespace
}  // namespace tern::tool

int main(int argc, char** argv) { return tern::tool::main_of(argc, argv); }
