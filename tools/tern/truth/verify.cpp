// tern verify: every layer and the logits beside the f64 reference, on the user's own file.
#include "verify/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"
#include "tools/tern/flags/model_flags.h"

namespace tern::tool {
namespace {

constexpr const char* kText = "A tern is a slender bird of coasts and rivers that dives for small fish.";

struct VerifyFlags {
  ModelFlags model;
  std::string text = kText;
  uint32_t tokens = 16;
  bool json = false;
};

// The inputs of one step that feeds one sequence from its beginning.
struct StepValues {
  std::vector<int32_t> ids, position, slot, row_start, kv_length, pages, rows, history;
  std::vector<float> settings;
  std::vector<uint32_t> seeds;

  StepValues(std::vector<TokenId> tokens, const StepShape& shape) : ids(std::move(tokens)) {
    const auto n = static_cast<int32_t>(ids.size());
    for (int32_t i = 0; i < n; ++i) position.push_back(i), slot.push_back(i);
    row_start = {0, n};
    kv_length = {n};
    for (uint32_t p = 0; p < shape.pages_per_sequence; ++p) pages.push_back(static_cast<int32_t>(p));
    rows = {n - 1};
    history.assign(shape.history, -1);
    settings.assign(8, 0.f);
    seeds.assign(4, 0);
  }
  std::map<std::string, TensorView> views() const {
    const auto all = [](const auto& v, std::vector<int64_t> shape) { return view(std::span(v), std::move(shape)); };
    const auto n = static_cast<int64_t>(ids.size());
    return {{"ids", all(ids, {n})},
            {"position", all(position, {n})},
            {"slot", all(slot, {n})},
            {"row_start", all(row_start, {2})},
            {"kv_length", all(kv_length, {1})},
            {"pages", all(pages, {1, static_cast<int64_t>(pages.size())})},
            {"rows", all(rows, {1})},
            {"settings", all(settings, {1, 8})},
            {"history", all(history, {1, static_cast<int64_t>(history.size())})},
            {"seeds", all(seeds, {1, 4})}};
  }
};

// What an output may differ by, relative, after `layers` layers. Int8 activations: a block of 32 is rounded to steps of
// max / 127, an error of max / (127 sqrt(12)); max is at most sqrt(32) times the block's rms. Four values a layer are
// rounded (one more before the logits), independently. Floats: 2^-24 a sum of K terms in any order, four sums a layer,
// and as much again for what lies between them; a factor of 4 covers the growth through norms. Keys and values are two
// more values a layer, rounded as they are kept: 16 bits to 2^-11 or 2^-8 of a component, q8 and q4
// to steps of max / 127 and max / 8 over 32 components.
double bound_after(double layers, const LlmInfo& info, bool precise, KvKind kv) {
  const double roundings = 4 * layers + 1;
  const double each = precise ? 4 * 0x1p-24 * std::sqrt(2.0 * std::max(info.hidden, info.ffn))
                              : std::sqrt(32.0) / (127 * std::sqrt(12.0));
  const double block = std::sqrt(32.0 / 12);
  const double by_kind[] = {0, 0x1p-11, 0x1p-8, block / 127, block / 8};  // in the order of KvKind
  const double kept = by_kind[static_cast<size_t>(kv)];
  return std::sqrt(each * each * roundings + kept * kept * 2 * layers);
}

struct Row {
  Deviation deviation;
  double bound;
  bool ok() const { return deviation.not_finite == 0 && deviation.relative() <= bound; }
};

Result<std::vector<Row>> measure(const VerifyFlags& flags) {
  TERN_OK(check_device(flags.model.device));
  TERN_TRY(const InspectedModel model, inspect_model(flags.model.path));
  TERN_TRY(TokenizerData data, tokenizer_data(model.file->metadata()));
  TERN_TRY(const Tokenizer tokenizer, Tokenizer::create(std::move(data)));
  TERN_TRY(std::vector<TokenId> ids, tokenizer.encode(flags.text));
  if (ids.empty()) return make_error(Code::invalid, "the text has no tokens; give another with --text");
  ids.resize(std::min<size_t>({ids.size(), flags.tokens, model.info.context}));
  StepShape shape;
  shape.max_tokens = static_cast<uint32_t>(ids.size());
  shape.pages_per_sequence = (shape.max_tokens + shape.page - 1) / shape.page;
  shape.taps = true;
  const StepValues values(std::move(ids), shape);
  shape.kv = KvKind::f32;
  TERN_TRY(const Graph reference, build_step_graph(*model.file, shape));
  shape.kv = kv_kind(flags.model.kv, flags.model.precise);
  TERN_TRY(Graph graph, build_step_graph(*model.file, shape));
  TERN_TRY(const Device device,
           open_device(flags.model.device, {.threads = flags.model.threads, .isa = {}, .cache_dir = {}}));
  ProgressLine line("reference");
  VerifyOptions options;
  options.compile.precise = flags.model.precise;
  options.compile.plugin_path = plugin_choice(flags.model);
  options.compile.pack_dir = pack_choice(flags.model);
  options.compile.tuning = tuning_choice(flags.model);
  options.compiled = [&](const Executable& exe) {
    line.clear();
    tell_notes(exe);
  };
  options.progress = [&](size_t done, size_t all) { line.update(done, all); };
  TERN_TRY(const VerifyReport report,
           verify(reference, std::move(graph), *model.file, device, values.views(), options));
  line.clear();
  std::vector<Row> rows;
  double layer = 0;
  for (const Deviation& d : report.outputs) {
    if (d.name != "logits") ++layer;
    rows.push_back({d, 0});
  }
  double at = 0;
  for (Row& row : rows) {
    row.bound = bound_after(row.deviation.name == "logits" ? layer : ++at, model.info, flags.model.precise,
                            kv_kind(flags.model.kv, flags.model.precise));
  }
  return rows;
}

void print(const std::vector<Row>& rows) {
  std::printf("%-10s %12s %12s %12s %12s\n", "output", "max |diff|", "rms diff", "relative", "bound");
  for (const Row& r : rows) {
    std::printf("%-10s %12.4g %12.4g %12.4g %12.4g%s\n", r.deviation.name.c_str(), r.deviation.max_abs, r.deviation.rms,
                r.deviation.relative(), r.bound, r.ok() ? "" : "  above its bound");
  }
}

int run_verify(const VerifyFlags& flags) {
  if (flags.tokens == 0) return wrong_use("--tokens wants 1 or more");
  const auto rows = measure(flags);
  if (!rows) return fail(rows.error());
  const bool ok = std::all_of(rows->begin(), rows->end(), [](const Row& r) { return r.ok(); });
  if (flags.json) {
    Json outputs = Json::array();
    for (const Row& r : *rows) {
      outputs.push_back({{"name", r.deviation.name},
                         {"max_abs", r.deviation.max_abs},
                         {"rms", r.deviation.rms},
                         {"relative", r.deviation.relative()},
                         {"bound", r.bound},
                         {"not_finite", r.deviation.not_finite},
                         {"ok", r.ok()}});
    }
    print_json({{"ok", ok},
                {"device", flags.model.device},
                {"precise", flags.model.precise},
                {"kv", std::string(kv_kind_name(kv_kind(flags.model.kv, flags.model.precise)))},
                {"outputs", outputs}});
  } else {
    print(*rows);
    std::printf("%s\n", ok ? "every output lies within its bound" : "FAILED: an output lies above its bound");
  }
  return ok ? kFine : kCheckFailed;
}

}  // namespace

Action add_verify(CommandLine& line) {
  auto flags = std::make_shared<VerifyFlags>();
  add_model_flags(line, flags->model);
  add_kernel_flags(line, flags->model);
  line.option("--text", flags->text, "The text that is fed").shows_default();
  line.option("--tokens", flags->tokens, "At most this many of its tokens").shows_default();
  line.flag("--json", flags->json, "One JSON object");
  line.footer(
      "Compares every layer and the logits with an evaluation in double precision that streams one weight at a time.\n"
      "Exit code 4 where an output differs by more than rounding explains.\n\n"
      "Examples:\n  tern verify model.gguf\n  tern verify model.gguf --precise --tokens 4 --json");
  return [flags] { return run_verify(*flags); };
}

}  // namespace tern::tool
