// tern run: a prompt, and the model's answer as it comes.
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"
#include "tools/tern/flags/model_flags.h"
#include "tools/tern/run/prompt.h"
#include "tools/tern/run/sampling.h"

namespace tern::tool {
namespace {

struct RunFlags {
  ModelFlags model;
  PromptFlags prompt;
  SamplingOptions sampling;
  std::optional<uint32_t> tokens;
  std::optional<std::string> force;
  std::vector<std::string> stop;
  std::vector<TokenId> force_ids;
  uint32_t top_logits = 0;
  bool ignore_end = false, json = false;
};

constexpr uint32_t kDefaultTokens = 512;

// The first Ctrl-C ends the answer, the second the program.
CancelToken* running = nullptr;
extern "C" void on_interrupt(int) {
  std::signal(SIGINT, SIG_DFL);
  running->cancel();
}

Status check(const RunFlags& flags) {
  const auto refuse = [](const char* text) { return make_error(Code::invalid, text); };
  TERN_OK(check_sampling_flags(flags.sampling));
  const PromptFlags& p = flags.prompt;
  if (int{p.ids.has_value()} + int{p.source.text.has_value()} + int{p.source.file.has_value()} > 1)
    return refuse("give one of -p, -f and --prompt-ids");
  if (p.ids && p.chat) return refuse("--prompt-ids is taken as it is; --chat wants a text (-p, -f or a pipe)");
  if (p.system && !p.chat) return refuse("--system is a part of the chat template; give --chat too");
  if (flags.top_logits > 0 && !flags.json) return refuse("--top-logits shows in --json only; give --json too");
  for (const std::string& stop : flags.stop) {
    if (stop.empty()) return refuse("--stop wants a text");
  }
  return ok();
}

struct Answer {
  GenerateResult result;
  std::vector<std::vector<std::pair<TokenId, float>>> top_logits;
  double load_s = 0, first_token_s = 0;
};

double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

Json answer_json(const Answer& a, const std::vector<TokenId>& prompt) {
  Json top = Json::array();
  for (const auto& step : a.top_logits) {
    Json row = Json::array();
    for (const auto& [id, logit] : step) row.push_back(Json::array({id, logit}));
    top.push_back(std::move(row));
  }
  const GenerateResult& r = a.result;
  return {{"prompt_ids", prompt},
          {"ids", r.ids},
          {"text", r.text},
          {"top_logits", std::move(top)},
          {"stop", std::string(stop_reason_name(r.reason))},
          {"timings",
           {{"load_s", a.load_s},
            {"first_token_s", a.first_token_s},
            {"prefill_s", r.prefill_s},
            {"decode_s", r.decode_s},
            {"prefill_tokens_per_s", rate(r.prompt_tokens, r.prefill_s)},
            {"decode_tokens_per_s", rate(r.decode_steps, r.decode_s)}}}};
}

void print_statistics(const Answer& a) {
  if (!stderr_is_terminal()) return;
  const GenerateResult& r = a.result;
  std::fprintf(stderr,
               "%u tokens read at %.0f/s, %zu written at %.1f/s; first after %.2f s (%.2f s of them loading); %s\n",
               r.prompt_tokens, rate(r.prompt_tokens, r.prefill_s), r.ids.size(), rate(r.decode_steps, r.decode_s),
               a.first_token_s, a.load_s, std::string(stop_reason_name(r.reason)).c_str());
}

Result<Answer> answer(LanguageModel& model, const RunFlags& flags, const std::vector<TokenId>& prompt) {
  Answer a;
  a.load_s = seconds_since_start();
  CancelToken cancel;
  running = &cancel;
  std::signal(SIGINT, on_interrupt);
  GenerateOptions options;
  // Forced ids say how long the answer is where nothing else does.
  options.max_tokens =
      flags.tokens.value_or(flags.force ? static_cast<uint32_t>(flags.force_ids.size()) : kDefaultTokens);
  options.sampling = flags.sampling;
  options.stop = flags.stop;
  options.ignore_end = flags.ignore_end;
  options.top_logits = flags.top_logits;
  options.force = flags.force_ids;
  options.cancel = &cancel;
  const bool stream = !flags.json;
  size_t shown = 0;  // bytes of the text
  const auto show = [&](std::string_view piece) {
    shown += piece.size();
    const std::string text = stdout_is_terminal() ? terminal_safe(piece) : std::string(piece);
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  };
  auto result = model.generate(prompt, options, [&](const GeneratedToken& token) {
    if (a.first_token_s == 0) a.first_token_s = seconds_since_start();
    if (flags.top_logits > 0) a.top_logits.push_back(token.top_logits);
    return !stream || token.text.empty() || show(token.text);  // nobody reads on: the answer ends
  });
  std::signal(SIGINT, SIG_DFL);
  running = nullptr;
  if (result) {
    a.result = std::move(*result);
    if (stream) show(std::string_view(a.result.text).substr(shown));  // held back until the answer was cancelled
  } else if (result.error().code == Code::cancelled) {                // while the prompt was read
    a.result.reason = StopReason::cancelled;
    a.result.prompt_tokens = static_cast<uint32_t>(prompt.size());
  } else {
    if (stream && a.first_token_s > 0) std::fputc('\n', stdout);
    return result.take_error();
  }
  return a;
}

int run(RunFlags& flags) {
  if (const Status good = check(flags); !good) return fail(good.error());
  if (flags.force) {
    auto ids = parse_ids(*flags.force);
    if (!ids) return fail(ids.error());
    if (ids->empty()) return wrong_use("--force-ids wants at least one id");
    flags.force_ids = std::move(*ids);
  }
  const auto text = prompt_text(flags.prompt);
  if (!text) return fail(text.error());
  auto model = open_model(flags.model);
  if (!model) return fail(model.error());
  const auto prompt = prompt_ids(flags.prompt, *text, *model);
  if (!prompt) return fail(prompt.error());
  if (const Status good = check_ids(flags.force_ids, model->tokenizer().size(), "--force-ids"); !good)
    return fail(good.error());
  if (prompt->size() > model->context()) {
    return wrong_use("the prompt has " + std::to_string(prompt->size()) + " tokens and the context holds " +
                     std::to_string(model->context()) + "; shorten it or give a larger --ctx (the model's own is " +
                     std::to_string(model->info().context) + ")");
  }
  const auto done = answer(*model, flags, *prompt);
  if (!done) return fail(done.error());
  if (flags.json) {
    print_json(answer_json(*done, *prompt));
  } else {
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }
  print_statistics(*done);
  return kFine;
}

}  // namespace

Action add_run(CommandLine& line) {
  auto flags = std::make_shared<RunFlags>();
  add_model_flags(line, flags->model);
  add_kernel_flags(line, flags->model);
  add_context_flag(line, flags->model);
  line.option("-p,--prompt", flags->prompt.source.text,
              "Prompt: plain text; special tokens in it stay text, but not with --chat");
  line.option("-f,--file", flags->prompt.source.file, "Read the prompt from this file; '-': from the pipe");
  line.option("--prompt-ids", flags->prompt.ids, "Prompt as token ids (1,2,3), taken as they are");
  line.flag("--chat", flags->prompt.chat, "Put the prompt into the model's chat template");
  line.option("--system", flags->prompt.system, "System message of the chat");
  line.option("-n,--tokens", flags->tokens,
              "Tokens to generate at most; " + std::to_string(kDefaultTokens) + " by default")
      .between(1, 1u << 30);
  add_sampling_flags(line, flags->sampling);
  line.option("--stop", flags->stop, "Stop before this text; may be given several times").may_be_repeated();
  line.flag("--ignore-eos", flags->ignore_end, "End-of-text tokens do not stop the answer");
  line.option("--force-ids", flags->force,
              "Feed these ids instead of the chosen ones, up to -n of them; `ids` still tells what was chosen");
  line.option("--top-logits", flags->top_logits, "Tell the n largest logits of every step (with --json)")
      .between(1, 1u << 20);
  line.flag("--json", flags->json, "One JSON object instead of text");
  line.footer(
      "Without -p, -f and --prompt-ids the prompt comes from the pipe; one newline at its end is dropped, as from "
      "files.\n\n"
      "Examples:\n"
      "  tern run model.gguf --chat -p \"Why is the sky blue?\"\n"
      "  git diff | tern run model.gguf --chat --system \"Write a commit message for this change.\" --temp 0\n"
      "  tern run model.gguf -p \"Once upon a time\" -n 100 --seed 7 --top-p 0.9\n"
      "  tern run model.gguf --prompt-ids 1,2,3 -n 16 --temp 0 --ignore-eos --top-logits 10 --json");
  return [flags] { return run(*flags); };
}

}  // namespace tern::tool
