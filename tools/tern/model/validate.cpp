// tern validate: everything that can be said of a model file without reading its weights.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tern/llm.h"
#include "tern/llm/chat.h"
#include "tools/tern/common/cache.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"

namespace tern::tool {
namespace {

struct ValidateFlags {
  std::string path, stage = "auto";
  bool json = false;
};

struct Finding {
  std::optional<Error> error;
  std::string stage = "container";  // how far the check went
  std::vector<std::string> warnings;
};

// Whether the file sets out to be a language model. A container may hold other things (adapters, vectors, plain
// tensors): it has an architecture then, and neither that architecture's keys nor a tokenizer.
bool claims_to_be_a_model(const ModelFile& file) {
  const auto architecture = file.metadata().string("general.architecture");
  if (!architecture || architecture->empty()) return true;
  const std::string prefix = *architecture + ".";
  const std::vector<std::string> keys = file.metadata().keys();
  return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return key.rfind(prefix, 0) == 0 || key.rfind("tokenizer.", 0) == 0;
  });
}

Status check_model(const ModelFile& file, Finding& finding) {
  TERN_TRY(const LlmInfo info, LanguageModel::inspect(file));
  TERN_TRY(TokenizerData data, tokenizer_data(file.metadata()));
  TERN_TRY(const Tokenizer tokenizer, Tokenizer::create(std::move(data)));
  if (tokenizer.size() > info.vocabulary) {
    return make_error(Code::malformed, "tokenizer.ggml.tokens has " + std::to_string(tokenizer.size()) +
                                           " tokens and token_embd.weight " + std::to_string(info.vocabulary) +
                                           " rows (vocabulary)");
  }
  if (!info.chat_template.empty()) {
    if (const auto parsed = ChatTemplate::parse(info.chat_template); !parsed)
      finding.warnings.push_back("the chat template cannot be used: " + parsed.error().message());
  }
  return ok();
}

Finding check(const ValidateFlags& flags) {
  Finding finding;
  auto file = open_named_model(flags.path);
  if (!file) {
    finding.error = file.take_error();
    return finding;
  }
  if (flags.stage == "container" || (flags.stage == "auto" && !claims_to_be_a_model(**file))) return finding;
  finding.stage = "model";
  if (Status good = check_model(**file, finding); !good) {
    finding.error = good.take_error();
  }
  return finding;
}

Json finding_json(const Finding& finding) {
  Json json = {
      {"ok", !finding.error.has_value()}, {"stage", finding.stage}, {"error", nullptr}, {"warnings", finding.warnings}};
  if (finding.error) {
    const auto offset = error_offset(*finding.error);
    json["error"] = {{"code", std::string(code_name(finding.error->code))},
                     {"message", finding.error->message()},
                     {"offset", nullptr}};
    if (offset) json["error"]["offset"] = *offset;
  }
  return json;
}

int validate(const ValidateFlags& flags) {
  const Finding finding = check(flags);
  for (const std::string& warning : finding.warnings) {
    if (!flags.json) complain("warning: " + warning);
  }
  if (flags.json) print_json(finding_json(finding));
  if (finding.error) {
    const Error& error = *finding.error;
    if (!flags.json) complain(error.message());
    // Whatever is wrong with the file is bad input here.
    return exit_code(error.code) == kNoResource ? kNoResource : kBadInput;
  }
  if (!flags.json)
    std::printf("%s: ok%s\n", printable(flags.path, 4096).c_str(), finding.stage == "model" ? "" : " as a container");
  return kFine;
}

}  // namespace

Action add_validate(CommandLine& line) {
  auto flags = std::make_shared<ValidateFlags>();
  line.option("model", flags->path, "Model file, or the name of a pulled one").required();
  line.option("--stage", flags->stage,
              "container: header, keys, tensor table and extents; model: also that a language model can be built "
              "from it; auto: model, "
              "unless the file holds no keys of one")
      .shows_default()
      .one_of({"auto", "container", "model"});
  line.flag("--json", flags->json,
            "{\"ok\", \"stage\", \"error\": null | {\"code\", \"message\", \"offset\"}, \"warnings\"}");
  line.footer(
      "Examples:\n  tern validate model.gguf\n  tern validate model.gguf --json\n  tern validate adapter.gguf --stage "
      "container");
  return [flags] { return validate(*flags); };
}

}  // namespace tern::tool
