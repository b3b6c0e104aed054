// tern tokenize: text to ids and back, with the file's own tokenizer. No weights are read.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tern/import/model_file.h"
#include "tools/tern/common/cache.h"
#include "tools/tern/common/input.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"

namespace tern::tool {
namespace {

struct TokenizeFlags {
  std::string path;
  TextSource source;
  std::optional<std::string> ids;
  bool parse_special = false, no_bos = false, json = false;
};

Result<Tokenizer> open_tokenizer(const std::string& path) {
  TERN_TRY(const std::unique_ptr<ModelFile> file, open_named_model(path));
  TERN_TRY(TokenizerData data, tokenizer_data(file->metadata()));
  return Tokenizer::create(std::move(data));
}

int decode(const TokenizeFlags& flags) {
  if (flags.source.text || flags.source.file) return wrong_use("give one of --text, -f and --ids");
  if (flags.no_bos) return wrong_use("--no-bos belongs to turning text into ids");
  const auto ids = parse_ids(*flags.ids);
  if (!ids) return fail(ids.error());
  const auto tokenizer = open_tokenizer(flags.path);
  if (!tokenizer) return fail(tokenizer.error());
  if (const Status good = check_ids(*ids, tokenizer->size(), "--ids"); !good) return fail(good.error());
  const auto text = tokenizer->decode(*ids, flags.parse_special);
  if (!text) return fail(text.error());
  if (flags.json) {
    print_json({{"text", *text}});
  } else {
    const std::string shown = (stdout_is_terminal() ? terminal_safe(*text) : *text) + "\n";
    std::fwrite(shown.data(), 1, shown.size(), stdout);
  }
  return kFine;
}

int encode(const TokenizeFlags& flags) {
  if (flags.source.text && flags.source.file) return wrong_use("give one of --text, -f and --ids");
  const auto text = take_text(flags.source, "--text");
  if (!text) return fail(text.error());
  const auto tokenizer = open_tokenizer(flags.path);
  if (!tokenizer) return fail(tokenizer.error());
  const auto ids = tokenizer->encode(*text, {.add_special = !flags.no_bos, .parse_special = flags.parse_special});
  if (!ids) return fail(ids.error());
  if (flags.json) {
    print_json({{"ids", *ids}});
    return kFine;
  }
  std::string line;
  for (const TokenId id : *ids) line += (line.empty() ? "" : ",") + std::to_string(id);
  std::puts(line.c_str());
  return kFine;
}

}  // namespace

Action add_tokenize(CommandLine& line) {
  auto flags = std::make_shared<TokenizeFlags>();
  line.option("model", flags->path, "Model file, or the name of a pulled one").required();
  line.option("--text", flags->source.text, "Text to turn into ids");
  line.option("-f,--file", flags->source.file, "Read the text from this file; '-': from the pipe");
  line.option("--ids", flags->ids, "Ids (1,2,3) to turn into text");
  line.flag("--parse-special", flags->parse_special,
            "Control tokens written in the text count as such; with --ids they are printed");
  line.flag("--no-bos", flags->no_bos, "No beginning-of-text (and end-of-text) token, whatever the file says");
  line.flag("--json", flags->json, "{\"ids\": [...]} or {\"text\": ...}");
  line.footer(
      "Examples:\n"
      "  tern tokenize model.gguf --text \"Hello world\"\n"
      "  tern tokenize model.gguf --text \"<|im_start|>user\" --parse-special --json\n"
      "  tern tokenize model.gguf --ids 19556,905");
  return [flags] { return flags->ids ? decode(*flags) : encode(*flags); };
}

}  // namespace tern::tool
