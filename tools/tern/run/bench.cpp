// tern bench: prefill and decode of a model, and how close decode comes to the speed at which this machine reads
// memory.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/cpu.h"
#include "base/measure/bandwidth.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"
#include "tools/tern/flags/model_flags.h"
#include "tools/tern/run/profile.h"

namespace tern::tool {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchFlags {
  ModelFlags model;
  uint32_t prompt = 512, decode = 128, depth = 0, repeats = 5;
  bool profile = false, json = false;
};

// Weights that a decode step reads, as the file stores them: all but the rows of an embedding table that is a table
// only.
double weight_bytes_per_step(const ModelFile& file) {
  const std::vector<ListedTensor> tensors = file.list_tensors();
  const bool untied =
      std::any_of(tensors.begin(), tensors.end(), [](const ListedTensor& t) { return t.name == "output.weight"; });
  double bytes = 0;
  for (const ListedTensor& t : tensors) {
    if (untied && t.name == "token_embd.weight" && !t.shape.empty() && t.shape[0] > 0) {
      bytes += static_cast<double>(t.bytes) / static_cast<double>(t.shape[0]);
    } else {
      bytes += static_cast<double>(t.bytes);
    }
  }
  return bytes;
}

// Keys and values read by a step, on average over sequences that grow from `depth` + 1 tokens by `tokens` - 1.
double kv_bytes_per_step(const LlmInfo& info, const BenchFlags& flags) {
  const KvKind kind = kv_kind(flags.model.kv, flags.model.precise);
  const auto token = static_cast<double>(2 * info.layers * kv_token_bytes(kind, info.kv_heads, info.head_size));
  return token * (flags.depth + (flags.decode + 1) / 2.0) * flags.model.sequences;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? 0 : n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

SequenceStep greedy_step(std::span<const TokenId> tokens, bool sample) {
  SequenceStep step;
  step.tokens = tokens;
  step.sample = sample;
  step.sampling.temperature = 0;
  return step;
}

Status feed(LanguageModel& model, std::span<const TokenId> ids, uint32_t sequence) {
  for (size_t at = 0; at < ids.size();) {
    const size_t n = std::min<size_t>(ids.size() - at, model.chunk());
    SequenceStep step = greedy_step(ids.subspan(at, n), at + n == ids.size());
    step.sequence = sequence;
    TERN_OK(model.step(std::span(&step, 1)));
    at += n;
  }
  return ok();
}

// Back to the context that every round starts behind; what is there already stays.
Status rewind(LanguageModel& model, const BenchFlags& flags) {
  for (uint32_t s = 0; s < flags.model.sequences; ++s) {
    TERN_OK(model.truncate(s, std::min(flags.depth, model.length(s))));
    TERN_OK(feed(model, some_ids(flags.depth - model.length(s), model.info().vocabulary), s));
  }
  return ok();
}

// Tokens a second over a whole prompt of one sequence, in chunks.
Result<double> prefill_once(LanguageModel& model, std::span<const TokenId> ids, const BenchFlags& flags) {
  TERN_OK(rewind(model, flags));
  const auto start = Clock::now();
  TERN_OK(feed(model, ids, 0));
  return static_cast<double>(ids.size()) / std::chrono::duration<double>(Clock::now() - start).count();
}

// Tokens a second of all sequences together, one of each a step.
Result<double> decode_once(LanguageModel& model, uint32_t tokens, const BenchFlags& flags) {
  TERN_OK(rewind(model, flags));
  std::vector<TokenId> next = some_ids(flags.model.sequences, model.info().vocabulary);
  std::vector<SequenceStep> steps(flags.model.sequences);
  for (uint32_t s = 0; s < flags.model.sequences; ++s) {
    steps[s] = greedy_step(std::span(&next[s], 1), true);
    steps[s].sequence = s;
  }
  const auto start = Clock::now();
  for (uint32_t i = 0; i < tokens; ++i) {
    TERN_TRY(const std::vector<StepResult> results, model.step(steps));
    for (uint32_t s = 0; s < flags.model.sequences; ++s) next[s] = results[s].id;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return static_cast<double>(tokens) * flags.model.sequences / seconds;
}

struct Profiles {
  std::vector<ProfileRow> prefill, decode;
};

// One step each, after everything was measured: timing every kernel slows a step down.
Result<Profiles> profile(LanguageModel& model, const BenchFlags& flags) {
  Profiles out;
  const std::vector<TokenId> ids = some_ids(std::max(flags.prompt, 1u), model.info().vocabulary);
  const std::span<const TokenId> all(ids);
  if (flags.prompt > 0) {
    TERN_TRY(out.prefill, profile_step(model, all.first(std::min<size_t>(ids.size(), model.chunk())), flags.depth));
  }
  if (flags.decode > 0) {
    TERN_TRY(out.decode, profile_step(model, all.first(1), flags.depth));
  }
  return out;
}

// Threads of this processor are what answers, and its memory what they read.
bool on_processor(const BenchFlags& flags) {
  const std::string& device = flags.model.device;
  return device.starts_with("cpu") || device.starts_with("mean");
}

struct Figures {
  std::vector<double> prefill, decode;
  double roof = 0;        // bytes a second; 0: unknown, the device reads other memory
  double step_bytes = 0;  // weights and KV read by a decode step
  uint32_t sequences = 1;
  unsigned threads = 0;

  double share() const { return roof > 0 ? median(decode) / sequences * step_bytes / roof : 0; }
};

Result<Figures> measure(LanguageModel& model, const BenchFlags& flags) {
  Figures figures;
  figures.sequences = flags.model.sequences;
  figures.threads = flags.model.threads != 0 ? flags.model.threads : allowed_cores();
  std::optional<ReadBandwidth> roof;
  if (on_processor(flags)) roof.emplace(figures.threads);
  const std::vector<TokenId> ids = some_ids(flags.prompt, model.info().vocabulary);
  ProgressLine progress("measuring");
  // The round before the first warms caches and clocks and does not count. The roof is read in every round, between the
  // others: on a shared machine all three see the same weather.
  for (uint32_t round = 0; round <= flags.repeats; ++round) {
    progress.update(round, flags.repeats + 1);
    double prefill = 0, decode = 0;
    if (flags.prompt > 0) {
      TERN_TRY(prefill, prefill_once(model, ids, flags));
    }
    if (flags.decode > 0) {
      TERN_TRY(decode, decode_once(model, round == 0 ? std::min(flags.decode, 8u) : flags.decode, flags));
    }
    if (roof) figures.roof = std::max(figures.roof, roof->best());
    if (round == 0) continue;
    if (flags.prompt > 0) figures.prefill.push_back(prefill);
    if (flags.decode > 0) figures.decode.push_back(decode);
  }
  return figures;
}

const std::string& embedding_format(const BenchFlags& flags) {
  return flags.model.embedding_format.empty() ? flags.model.format : flags.model.embedding_format;
}

void print_shape(const LlmInfo& info, const BenchFlags& flags) {
  std::printf("%s (%s): %s parameters in %s; random weights, matrices %s, embedding and output %s\n",
              flags.model.shape.c_str(), info.architecture.c_str(),
              human_count(static_cast<double>(info.parameters)).c_str(),
              human_bytes(static_cast<double>(info.weight_bytes)).c_str(), flags.model.format.c_str(),
              embedding_format(flags).c_str());
}

void print_figures(const Figures& f, const BenchFlags& flags) {
  const auto row = [](const char* name, uint32_t n, const std::vector<double>& values) {
    if (values.empty()) return;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    std::printf("%-8s %5u  %10.1f tokens/s  (%.1f .. %.1f)\n", name, n, median(values), *low, *high);
  };
  const std::string with = on_processor(flags) ? std::to_string(f.threads) + " threads" : flags.model.device;
  std::printf("%s, %u rounds, medians\n", with.c_str(), flags.repeats);
  row("prefill", flags.prompt, f.prefill);
  row("decode", flags.decode, f.decode);
  if (flags.model.sequences > 1) std::printf("decode of %u sequences together\n", flags.model.sequences);
  if (!f.decode.empty() && f.roof == 0)
    std::printf("decode reads %s a step: %.1f GB/s\n", human_bytes(f.step_bytes).c_str(),
                median(f.decode) / f.sequences * f.step_bytes / 1e9);
  else if (!f.decode.empty()) {
    std::printf(
        "decode reads %s a step: %.0f %% of the memory roof (%.1f GB/s, read by as many threads in the same run)\n",
        human_bytes(f.step_bytes).c_str(), 100 * f.share(), f.roof / 1e9);
  }
}

Json figures_json(const Figures& f, const BenchFlags& flags) {
  Json json = {{"prompt_tokens", flags.prompt},
               {"decode_tokens", flags.decode},
               {"repeats", flags.repeats},
               {"depth", flags.depth},
               {"sequences", flags.model.sequences},
               {"kv", std::string(kv_kind_name(kv_kind(flags.model.kv, flags.model.precise)))},
               {"device", flags.model.device},
               {"threads", nullptr},
               {"prefill_tokens_per_s", nullptr},
               {"decode_tokens_per_s", nullptr},
               {"decode_roof_share", nullptr}};
  if (!f.prefill.empty()) json["prefill_tokens_per_s"] = median(f.prefill);
  if (!f.decode.empty()) {
    json["decode_tokens_per_s"] = median(f.decode);
    if (f.roof > 0) json["decode_roof_share"] = f.share();
  }
  if (on_processor(flags)) json["threads"] = f.threads;
  json["decode_bytes_per_step"] = f.step_bytes;
  json["read_bytes_per_s"] = f.roof > 0 ? Json(f.roof) : Json();
  if (!flags.model.shape.empty()) {
    json["shape"] = flags.model.shape;
    json["format"] = flags.model.format;
    json["embedding_format"] = embedding_format(flags);
  }
  json["prefill_rounds"] = f.prefill;
  json["decode_rounds"] = f.decode;
  return json;
}

int bench(BenchFlags flags) {
  if (flags.model.shape == "list") return list_shapes(flags.json);
  if (flags.prompt == 0 && flags.decode == 0) return wrong_use("-p 0 -n 0 leaves nothing to measure");
  const uint32_t need = flags.depth + std::max({flags.prompt, flags.decode, 1u});
  if (flags.model.context != 0 && flags.model.context < need)
    return wrong_use("--ctx is smaller than what -p, -n and --depth ask for");
  if (flags.model.sequences > 1 && flags.model.context == 0)
    flags.model.context = need;  // of each: no more than is used
  auto source = open_source(flags.model);
  if (!source) return fail(source.error());
  auto model = open_model(flags.model, **source, need);
  if (!model) return fail(model.error());
  const double weight_bytes = weight_bytes_per_step(**source);
  source->reset();  // what a made model's weights come from takes memory
  auto figures = measure(*model, flags);
  if (!figures) return fail(figures.error());
  Profiles profiles;
  if (flags.profile) {
    auto done = profile(*model, flags);
    if (!done) return fail(done.error());
    profiles = std::move(*done);
  }
  figures->step_bytes = weight_bytes + kv_bytes_per_step(model->info(), flags);
  if (flags.json) {
    Json json = figures_json(*figures, flags);
    if (flags.profile)
      json["profile"] = {{"prefill", profile_json(profiles.prefill)}, {"decode", profile_json(profiles.decode)}};
    print_json(json);
  } else {
    if (!flags.model.shape.empty()) print_shape(model->info(), flags);
    print_figures(*figures, flags);
    if (!profiles.prefill.empty()) print_profile("prefill, one chunk", profiles.prefill);
    if (!profiles.decode.empty()) print_profile("decode, one token", profiles.decode);
  }
  return kFine;
}

}  // namespace

Action add_bench(CommandLine& line) {
  auto flags = std::make_shared<BenchFlags>();
  add_model_or_shape_flags(line, flags->model);
  add_kernel_flags(line, flags->model);
  add_context_flag(line, flags->model);
  line.option("-p,--prompt", flags->prompt, "Tokens of the prompt; 0: no prefill").shows_default().between(0, 1u << 24);
  line.option("-n,--tokens", flags->decode, "Tokens to generate; 0: no decode").shows_default().between(0, 1u << 24);
  line.option("-d,--depth", flags->depth, "Tokens of context that prefill and decode start behind")
      .shows_default()
      .between(0, 1u << 24);
  line.option("-b,--sequences", flags->model.sequences,
              "Sequences that decode side by side; tokens a second are those of all")
      .shows_default()
      .between(1, 512u);
  line.option("-r,--repeats", flags->repeats, "Rounds; the medians are told").shows_default().between(1, 10000u);
  line.flag("--profile", flags->profile, "Also where the time of one chunk and of one token goes, kernel by kernel");
  line.flag("--json", flags->json, "One JSON object");
  line.footer(
      "Prefill and decode both start behind --depth tokens, by default from an empty sequence. With --shape nothing is "
      "read from disk: weights are random blocks of the format that decode to the size of real ones, norms lie about "
      "1; "
      "speed and memory are those of a real model of the shape, its text has no meaning.\n\n"
      "Examples:\n  tern bench model.gguf\n  tern bench model.gguf -p 512 -n 128 -t 2 -r 5 --json\n"
      "  tern bench model.gguf -p 0 -b 8\n  tern bench --shape list\n  tern bench --shape llama-3-8b --format q4_0 "
      "--embedding-format q8_0 -t 2");
  return [flags] { return bench(*flags); };
}

}  // namespace tern::tool
