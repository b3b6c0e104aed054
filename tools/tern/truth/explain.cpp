// tern explain: what a model is compiled to. Compiles, but packs no weights.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"
#include "tools/tern/flags/model_flags.h"

namespace tern::tool {
namespace {

struct ExplainFlags {
  ModelFlags model;
  std::optional<size_t> range;
  bool program = false, json = false;
};

Result<Executable> compile_model(const ModelFlags& flags) {
  TERN_OK(check_device(flags.device));
  TERN_TRY(const InspectedModel model, inspect_model(flags.path));
  StepShape shape;
  const uint32_t context = flags.context != 0 ? flags.context : std::min(model.info.context, 4096u);
  if (context > model.info.context) {
    return make_error(Code::invalid, "a context of " + std::to_string(context) + " tokens exceeds the model's " +
                                         std::to_string(model.info.context));
  }
  shape.max_tokens = std::min(shape.max_tokens, context);
  shape.pages_per_sequence = (context + shape.page - 1) / shape.page;
  shape.kv = kv_kind(flags.kv, flags.precise);
  TERN_TRY(Graph graph, build_step_graph(*model.file, shape));
  TERN_TRY(const Device device, open_device(flags.device, {.threads = flags.threads, .isa = {}, .cache_dir = {}}));
  Options options;
  options.ranges = step_ranges(shape);
  options.precise = flags.precise;
  options.plugin_path = plugin_choice(flags);
  options.pack_dir = pack_choice(flags);
  options.tuning = tuning_choice(flags);
  return compile(std::move(graph), device, options);
}

std::string source_text(const StepInfo& s) { return s.source ? std::string(kernel_source_name(*s.source)) : ""; }

Json step_json(const StepInfo& s) {
  Json refusals = Json::array();
  for (const auto& [candidate, why] : s.refusals) refusals.push_back({{"candidate", candidate}, {"why", why}});
  return {{"label", s.label},         {"kernel", s.kernel},
          {"source", source_text(s)}, {"problem", s.problem},
          {"variant", s.variant},     {"phase", s.phase},
          {"bytes", s.bytes},         {"flop", s.flop},
          {"seconds", s.seconds},     {"refusals", std::move(refusals)}};
}

Json explain_json(const Executable& exe, const Explanation& e, const ExplainFlags& flags) {
  Json ranges = Json::array();
  for (size_t i = 0; i < e.ranges.size(); ++i) {
    if (flags.range && *flags.range != i) continue;
    Json steps = Json::array();
    for (const StepInfo& step : e.ranges[i].steps) steps.push_back(step_json(step));
    ranges.push_back({{"index", i},
                      {"when", e.ranges[i].when},
                      {"phases", e.ranges[i].phases},
                      {"arena_bytes", e.ranges[i].arena_bytes},
                      {"steps", std::move(steps)}});
  }
  const MemoryNeed m = exe.memory();
  const CompileTimings& t = e.timings;
  Json compiled = Json::array();
  for (const auto& [kernel, seconds] : t.compiled) compiled.push_back({{"kernel", kernel}, {"seconds", seconds}});
  Json json = {
      {"ranges", std::move(ranges)},
      {"memory",
       {{"weights", m.weights}, {"state", m.state}, {"scratch", m.scratch}, {"io", m.io}, {"total", m.total()}}},
      {"timings",
       {{"passes_s", t.passes_s},
        {"lower_s", t.lower_s},
        {"kernels_s", t.kernels_s},
        {"total_s", t.total_s},
        {"kernels", t.kernels},
        {"kernels_packed", t.kernels_packed},
        {"kernels_cached", t.kernels_cached},
        {"kernels_compiled", t.kernels_compiled},
        {"kernels_interpreted", t.kernels_interpreted},
        {"notes", t.notes},
        {"compiled", std::move(compiled)}}}};
  if (flags.program) json["program"] = exe.program_text();
  return json;
}

void print_range(size_t index, const RangeInfo& range) {
  double bytes = 0, flop = 0;
  for (const StepInfo& s : range.steps) bytes += s.bytes, flop += s.flop;
  std::printf("range %zu: %s\n  %zu steps in %u phases, %s moved, %sFLOP, arena %s\n", index,
              range.when.empty() ? "any size" : range.when.c_str(), range.steps.size(), range.phases,
              human_bytes(bytes).c_str(), human_count(flop).c_str(),
              human_bytes(static_cast<double>(range.arena_bytes)).c_str());
  std::printf("  %5s  %-36s %-20s %-11s %12s %12s %10s\n", "phase", "step", "kernel", "from", "bytes", "FLOP",
              "estimate");
  for (const StepInfo& s : range.steps) {
    std::printf("  %5u  %-36s %-20s %-11s %12s %12s %7.1f us\n", s.phase, s.label.c_str(), s.kernel.c_str(),
                source_text(s).c_str(), human_bytes(s.bytes).c_str(), human_count(s.flop).c_str(), s.seconds * 1e6);
    if (!s.problem.empty())
      std::printf("         %s%s%s\n", s.problem.c_str(), s.variant.empty() ? "" : " -> ", s.variant.c_str());
    for (const auto& [candidate, why] : s.refusals)
      std::printf("         %s refused: %s\n", candidate.c_str(), why.c_str());
  }
}

void print_explanation(const Executable& exe, const Explanation& e, const ExplainFlags& flags) {
  for (size_t i = 0; i < e.ranges.size(); ++i) {
    if (!flags.range || *flags.range == i) print_range(i, e.ranges[i]);
  }
  const MemoryNeed m = exe.memory();
  const auto text = [](uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  std::printf("memory: weights %s, state %s, scratch %s, inputs and outputs %s\n", text(m.weights).c_str(),
              text(m.state).c_str(), text(m.scratch).c_str(), text(m.io).c_str());
  const CompileTimings& t = e.timings;
  std::printf(
      "compiled in %.1f ms: passes %.1f, lower %.1f, kernels %.1f (%u kernels: %u from the pack, %u from the cache, %u "
      "compiled now, %u interpreted)\n",
      t.total_s * 1e3, t.passes_s * 1e3, t.lower_s * 1e3, t.kernels_s * 1e3, t.kernels, t.kernels_packed,
      t.kernels_cached, t.kernels_compiled, t.kernels_interpreted);
  for (const auto& [kernel, seconds] : t.compiled) std::printf("  %-48s %7.2f ms\n", kernel.c_str(), seconds * 1e3);
  if (flags.program) std::printf("%s", exe.program_text().c_str());
}

int explain(const ExplainFlags& flags) {
  const auto exe = compile_model(flags.model);
  if (!exe) return fail(exe.error());
  tell_notes(*exe);
  const Explanation e = exe->explain();
  if (flags.range && *flags.range >= e.ranges.size()) {
    return wrong_use("--range wants 0 .. " + std::to_string(e.ranges.size() - 1) + " for this model");
  }
  if (flags.json) {
    print_json(explain_json(*exe, e, flags));
  } else {
    print_explanation(*exe, e, flags);
  }
  return kFine;
}

}  // namespace

Action add_explain(CommandLine& line) {
  auto flags = std::make_shared<ExplainFlags>();
  add_model_flags(line, flags->model);
  add_kernel_flags(line, flags->model);
  add_context_flag(line, flags->model);
  line.option("--range", flags->range, "Only this range of sizes (0: decode)");
  line.flag("--program", flags->program, "Also the program in full");
  line.flag("--json", flags->json, "One JSON object");
  line.footer(
      "Bytes, FLOP and times are estimates at the upper end of a range.\n\n"
      "Examples:\n  tern explain model.gguf\n  tern explain model.gguf --range 0\n  tern explain model.gguf --precise "
      "--json");
  return [flags] { return explain(*flags); };
}

}  // namespace tern::tool
