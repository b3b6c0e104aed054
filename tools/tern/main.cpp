// The program: picks the verb, turns mistakes of use into exit code 1 and one line.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/tern/common/report.h"
#include "tools/tern/common/verb.h"

namespace tern::tool {

#define TERN_VERB(name, summary) Action add_##name(CLI::App& app);
#include "tools/tern/verb_list.inc"
#undef TERN_VERB

namespace {

struct Verb {
  const char* name;
  const char* summary;
  Action (*add)(CLI::App& app);
};
constexpr Verb kVerbs[] = {
#define TERN_VERB(name, summary) {#name, summary, &add_##name},
#include "tools/tern/verb_list.inc"
#undef TERN_VERB
};

int main_of(int argc, char** argv) {
  CLI::App app("tern compiles a model once and runs it on any device.", "tern");
  app.set_version_flag("--version", "tern " TERN_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  tern run model.gguf --chat -p \"Why is the sky blue?\"\n  tern info model.gguf\n  tern <verb> "
      "--help");
  Action action;
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    sub->callback([&action, run = verb.add(*sub)] { action = run; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return app.exit(done);
  } catch (const CLI::Error& error) {
    return wrong_use(std::string(error.what()) + "; `tern --help` and `tern VERB --help` tell more");
  }
  const int code = action();
  if (std::fflush(stdout) != 0) {
    complain("the output could not be written");
    return code == kFine ? static_cast<int>(kNoResource) : code;
  }
  return code;
}

}  // namespace
}  // namespace tern::tool

int main(int argc, char** argv) { return tern::tool::main_of(argc, argv); }
