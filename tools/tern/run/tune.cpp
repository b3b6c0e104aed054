// tern tune: times the variants of the kernels that a model takes, and keeps the fastest for this machine.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tern/tune/tuner.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"
#include "tools/tern/flags/model_flags.h"
#include "tools/tern/run/profile.h"

namespace tern::tool {
namespace {

// No kernel has as many variants; a stop for what should not be.
constexpr size_t kMostTrials = 64;

struct TuneFlags {
  ModelFlags model;
  uint32_t rounds = 9;
  bool dry = false, json = false;
};

// One trial: a chunk of the prompt, a few tokens, one token behind the chunk; each some times. Whether a variant came
// up that no trial before had.
Result<bool> time_trial(const TuneFlags& flags, const ModelFile& source, size_t trial, Tuner& tuner) {
  ModelFlags chosen = flags.model;
  chosen.tuning = std::make_shared<const Tuning>(Tuning::trial(trial));
  TERN_TRY(LanguageModel model, open_model(chosen, source));
  if (const CompileTimings& t = model.executable().timings(); t.kernels_interpreted > 0) {
    return make_error(Code::not_found,
                      "variants are compiled by the code generator, which is not there; `tern info "
                      "--build` tells why");
  }
  const uint32_t chunk = std::min(model.chunk(), model.context() - 1);
  const std::vector<TokenId> ids = some_ids(chunk, model.info().vocabulary);
  bool fresh = false;
  ProgressLine progress("timing");
  for (uint32_t round = 0; round <= flags.rounds; ++round) {
    progress.update(round, flags.rounds + 1);
    for (const uint32_t tokens : {chunk, std::min(4u, chunk), 1u}) {
      const uint32_t depth = tokens == chunk ? 0 : chunk;
      if (depth + tokens > model.context()) continue;
      TERN_TRY(const std::vector<StepProfile> steps, run_profiled(model, std::span(ids).first(tokens), depth));
      if (round > 0) fresh = tuner.add(steps) || fresh;  // the first one warms caches and clocks
    }
  }
  return fresh;
}

Json tuning_json(const Tuning& tuning, const std::string& path, size_t variants) {
  Json list = Json::array();
  for (const TunedKernel& k : tuning.kernels()) {
    list.push_back({{"kernel", k.kernel},
                    {"problem", k.problem},
                    {"variant", k.variant},
                    {"seconds", k.seconds},
                    {"usual_seconds", k.usual_seconds}});
  }
  Json json = {{"variants", variants}, {"tuned", std::move(list)}, {"path", nullptr}};
  if (!path.empty()) json["path"] = path;
  return json;
}

void print_tuning(const Tuning& tuning, const std::string& path, size_t variants) {
  std::printf("%zu variants timed, %zu kernels are faster in another than the usual one\n", variants,
              tuning.kernels().size());
  for (const TunedKernel& k : tuning.kernels()) {
    std::printf("%-20s %-8s %9.1f us instead of %9.1f  %s\n", k.kernel.c_str(), k.variant.c_str(), k.seconds * 1e6,
                k.usual_seconds * 1e6, k.problem.c_str());
  }
  if (!path.empty()) std::printf("kept in %s\n", printable(path, 4096).c_str());
}

int tune(const TuneFlags& flags) {
  if (flags.model.shape == "list") return list_shapes(flags.json);
  auto source = open_source(flags.model);
  if (!source) return fail(source.error());
  Tuner tuner;
  for (size_t trial = 0; trial < kMostTrials; ++trial) {
    const auto fresh = time_trial(flags, **source, trial, tuner);
    if (!fresh) return fail(fresh.error());
    if (!*fresh) break;
  }
  const auto device = open_device(flags.model.device, {.threads = flags.model.threads, .isa = {}, .cache_dir = {}});
  if (!device) return fail(device.error());
  // What was found for other models stays.
  const auto kept = load_tuning(*device);
  const Tuning found = tuner.best(), all = tuner.merged(kept ? *kept : Tuning());
  std::string path;
  if (!flags.dry) {
    auto saved = save_tuning(*device, all);
    if (!saved) return fail(saved.error());
    path = std::move(*saved);
  }
  if (flags.json)
    print_json(tuning_json(found, path, tuner.variants()));
  else
    print_tuning(found, path, tuner.variants());
  return kFine;
}

}  // namespace

Action add_tune(CommandLine& line) {
  auto flags = std::make_shared<TuneFlags>();
  add_model_or_shape_flags(line, flags->model);
  add_context_flag(line, flags->model);
  line.option("-r,--rounds", flags->rounds, "Runs of each variant; the medians are compared")
      .shows_default()
      .between(1, 1000);
  line.flag("--dry-run", flags->dry, "Tell only; keep nothing");
  line.flag("--json", flags->json, "One JSON object");
  line.footer(
      "Every kernel gives the same numbers in all its variants: tuning changes speed, never text. What is found is "
      "kept "
      "for this processor and number of threads in tern/tuning of the user's cache folder, and every verb takes it "
      "from "
      "there (--no-tuning does not). On a busy machine times scatter: tune on a quiet one.\n\n"
      "Examples:\n  tern tune model.gguf\n  tern tune model.gguf -t 1 --dry-run\n  tern tune --shape qwen3-1.7b "
      "--format "
      "q4_k");
  return [flags] { return tune(*flags); };
}

}  // namespace tern::tool
