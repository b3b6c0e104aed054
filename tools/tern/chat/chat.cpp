// tern chat: a conversation. What the model has read of it stays in its KV state: each turn feeds the new tokens only.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tools/tern/chat/conversation.h"
#include "tools/tern/chat/interrupt.h"
#include "tools/tern/chat/lines.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"
#include "tools/tern/flags/model_flags.h"
#include "tools/tern/run/prompt.h"
#include "tools/tern/run/sampling.h"

namespace tern::tool {
namespace {

struct ChatFlags {
  ModelFlags model;
  SamplingOptions sampling;
  std::optional<std::string> system;
  std::optional<uint32_t> tokens;
  bool no_history = false, json = false;
};

constexpr const char* kHelp =
    "/reset       forget the conversation, keep the system message\n"
    "/regen       answer the last message anew, with the next seed\n"
    "/save FILE   write the conversation (JSON)\n"
    "/load FILE   continue a conversation that was written\n"
    "/help        this list\n"
    "/quit        leave (also Ctrl-D, or Ctrl-C twice)\n"
    "Ctrl-C stops an answer. A message that begins with // is sent with one / less.\n";

std::string history_file() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/tern/chat_history";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.local/state/tern/chat_history" : std::string();
}

class Chat {
 public:
  Chat(LanguageModel model, ChatTemplate chat, const ChatFlags& flags)
      : model_(std::move(model)),
        template_(std::move(chat)),
        flags_(flags),
        talk_(flags.system),
        lines_(flags.no_history ? std::string() : history_file()) {}

  int run() {
    if (lines_.interactive()) {
      std::printf("%s, a context of %u tokens; /help tells the commands\n",
                  terminal_safe(printable(model_.info().name, 200)).c_str(), model_.context());
    }
    bool warned = false;
    for (;;) {
      std::fflush(stdout);
      std::string line;
      const Lines::Event event = lines_.next(line);
      if (event == Lines::Event::end) {
        if (lines_.interactive()) std::fputc('\n', stdout);
        return kFine;
      }
      if (event == Lines::Event::interrupt) {
        if (warned || !lines_.interactive()) return kFine;
        warned = true;
        std::printf("(Ctrl-C once more leaves)\n");
        continue;
      }
      warned = false;
      const Status status = take(line);
      if (left_) return kFine;
      if (status) continue;
      complain(status.error().message());
      // A person goes on; a script would go on with a conversation that it does not expect.
      if (!lines_.interactive()) return exit_code(status.error().code);
    }
  }

 private:
  Status take(const std::string& line);
  Status command(const std::string& name, const std::string& argument);
  Status answer();
  Result<GenerateResult> generate(const std::vector<TokenId>& ids);
  void show(const GenerateResult& result);

  LanguageModel model_;
  ChatTemplate template_;
  const ChatFlags& flags_;
  Conversation talk_;
  Interrupts interrupts_;  // before lines_, which waits for them
  Lines lines_;
  uint64_t regenerated_ = 0;
  bool left_ = false;
};

Status Chat::take(const std::string& line) {
  if (line.find_first_not_of(" \t") == std::string::npos) return ok();
  if (line[0] == '/' && line.compare(0, 2, "//") != 0) {
    const size_t space = line.find(' ');
    const size_t argument = space == std::string::npos ? space : line.find_first_not_of(' ', space);
    return command(line.substr(0, space), argument == std::string::npos ? std::string() : line.substr(argument));
  }
  regenerated_ = 0;
  talk_.add("user", line[0] == '/' ? line.substr(1) : line);
  Status status = answer();
  if (!status) talk_.drop_last();  // it was not answered, so it was not said
  return status;
}

Status Chat::command(const std::string& name, const std::string& argument) {
  const auto file = [&]() -> Status {
    return argument.empty() ? Status(make_error(Code::invalid, name + " wants a file name")) : ok();
  };
  if (name == "/quit") {
    left_ = true;
  } else if (name == "/help") {
    std::fputs(kHelp, stdout);
  } else if (name == "/reset") {
    talk_.reset();
  } else if (name == "/save") {
    TERN_OK(file());
    return talk_.save(argument);
  } else if (name == "/load") {
    TERN_OK(file());
    return talk_.load(argument);
  } else if (name == "/regen") {
    if (talk_.messages().empty() || talk_.messages().back().role != "assistant")
      return make_error(Code::invalid, "there is no answer yet that could be made anew");
    const std::string before = talk_.messages().back().content;
    talk_.drop_last();
    ++regenerated_;
    Status status = answer();
    if (!status) talk_.add("assistant", before);
    return status;
  } else {
    return make_error(Code::invalid, "there is no command '" + printable(name) + "'; /help lists them");
  }
  return ok();
}

Result<GenerateResult> Chat::generate(const std::vector<TokenId>& ids) {
  CancelToken cancel;
  GenerateOptions options;
  options.max_tokens = flags_.tokens.value_or(model_.context());
  options.sampling = flags_.sampling;
  options.sampling.seed += regenerated_;
  options.reuse = true;
  options.cancel = &cancel;
  const bool safe = stdout_is_terminal();
  Interrupts::cancels(&cancel);
  auto result = model_.generate(ids, options, [&](const GeneratedToken& token) {
    if (flags_.json || token.text.empty()) return true;
    const std::string text = safe ? terminal_safe(token.text) : token.text;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return true;
  });
  Interrupts::cancels(nullptr);
  if (result || result.error().code != Code::cancelled) return result;
  GenerateResult none;  // stopped while the conversation was read
  none.reason = StopReason::cancelled;
  none.prompt_tokens = static_cast<uint32_t>(ids.size());
  return none;
}

void Chat::show(const GenerateResult& r) {
  if (!flags_.json) {
    std::fputc('\n', stdout);
    if (r.reason == StopReason::context_full)
      complain("the context is full; /reset begins anew, a larger --ctx holds more (the model's own is " +
               std::to_string(model_.info().context) + ")");
    return;
  }
  print_json({{"text", r.text},
              {"stop", std::string(stop_reason_name(r.reason))},
              {"prompt_tokens", r.prompt_tokens},
              {"reused_tokens", r.reused_tokens},
              {"tokens", r.ids.size()},
              {"prefill_s", r.prefill_s},
              {"decode_s", r.decode_s}});
}

Status Chat::answer() {
  TERN_TRY(const std::vector<TokenId> ids, conversation_ids(template_, talk_.messages(), model_.tokenizer()));
  if (ids.empty()) return make_error(Code::malformed, "the chat template makes nothing of this conversation");
  if (ids.size() > model_.context()) {
    return make_error(Code::limit, "the conversation has " + std::to_string(ids.size()) +
                                       " tokens with this message, and the context holds " +
                                       std::to_string(model_.context()) +
                                       "; /reset begins anew, a larger --ctx holds more (the model's own is " +
                                       std::to_string(model_.info().context) + ")");
  }
  TERN_TRY(const GenerateResult result, generate(ids));
  show(result);
  talk_.add("assistant", result.text);
  return ok();
}

int chat(const ChatFlags& flags) {
  if (const Status good = check_sampling_flags(flags.sampling); !good) return fail(good.error());
  if (const Status good = check_device(flags.model.device); !good) return fail(good.error());
  const auto source = open_source(flags.model);
  if (!source) return fail(source.error());
  const auto info = LanguageModel::inspect(**source);
  if (!info) return fail(info.error());
  auto parsed = chat_template(*info);  // before weights are read
  if (!parsed) return fail(parsed.error());
  auto model = open_model(flags.model, **source);
  if (!model) return fail(model.error());
  return Chat(std::move(*model), std::move(*parsed), flags).run();
}

}  // namespace

Action add_chat(CommandLine& line) {
  auto flags = std::make_shared<ChatFlags>();
  add_model_flags(line, flags->model);
  add_kernel_flags(line, flags->model);
  add_context_flag(line, flags->model);
  line.option("--system", flags->system, "System message, in front of the conversation");
  line.option("-n,--tokens", flags->tokens, "Tokens of an answer at most; by default what the context holds")
      .between(1, 1u << 30);
  add_sampling_flags(line, flags->sampling);
  line.flag("--no-history", flags->no_history,
            "Neither read nor keep the lines of earlier chats ($XDG_STATE_HOME/tern/chat_history)");
  line.flag("--json", flags->json, "One JSON object a line for each answer instead of text");
  line.footer(
      std::string("In a conversation:\n") + kHelp +
      "Without a terminal each line of the pipe is a message, and the first one that fails ends the program.\n\n"
      "Examples:\n  tern chat model.gguf\n  tern chat model.gguf --system \"Answer in one sentence.\" --temp 0.2\n"
      "  printf 'Hello\\nWhy?\\n' | tern chat model.gguf --json");
  return [flags] { return chat(*flags); };
}

}  // namespace tern::tool
