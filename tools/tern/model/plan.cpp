// tern plan: the memory that a model will take on a device, before a weight is read.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"
#include "tools/tern/flags/model_flags.h"

namespace tern::tool {
namespace {

struct PlanFlags {
  ModelFlags model;
  bool json = false;
};

Json plan_json(const LlmPlan& p, const PlanFlags& flags) {
  Json json = {{"device", flags.model.device},
               {"kv", std::string(kv_kind_name(p.kv))},
               {"context", p.context},
               {"weights_bytes", p.need.weights},
               {"state_bytes", p.need.state},
               {"scratch_bytes", p.need.scratch},
               {"io_bytes", p.need.io},
               {"host_bytes", p.host},
               {"total_bytes", p.total()},
               {"available_bytes", p.memory.available},
               {"device_bytes", p.memory.total},
               {"fits", !p.refusal.has_value()},
               {"refusal", nullptr}};
  if (p.refusal) json["refusal"] = p.refusal->message();
  return json;
}

void print_plan(const LlmPlan& p, const PlanFlags& flags) {
  const auto row = [](const char* name, uint64_t bytes, const std::string& what) {
    std::printf("%-10s %12s  %s\n", name, human_bytes(static_cast<double>(bytes)).c_str(), what.c_str());
  };
  std::printf("%s, a context of %u tokens, on %s\n", printable(p.info.name, 200).c_str(), p.context,
              flags.model.device.c_str());
  row("weights", p.need.weights, "in the layouts of this device");
  row("state", p.need.state, "keys and values of the context, " + std::string(kv_kind_name(p.kv)));
  row("scratch", p.need.scratch, "between the steps of a run");
  row("io", p.need.io, "inputs and outputs");
  row("host", p.host, "tokenizer");
  row("total", p.total(), "");
  row("available", p.memory.available, "");
}

int plan(const PlanFlags& flags) {
  if (flags.model.shape == "list") return list_shapes(flags.json);
  if (const Status good = check_device(flags.model.device); !good) return fail(good.error());
  const auto file = open_source(flags.model);
  if (!file) return fail(file.error());
  const auto plan = LanguageModel::plan(**file, llm_options(flags.model));
  if (!plan) return fail(plan.error());
  if (flags.json) {
    print_json(plan_json(*plan, flags));
  } else {
    print_plan(*plan, flags);
  }
  return plan->refusal ? fail(*plan->refusal) : kFine;
}

}  // namespace

Action add_plan(CommandLine& line) {
  auto flags = std::make_shared<PlanFlags>();
  add_model_or_shape_flags(line, flags->model);
  add_context_flag(line, flags->model);
  line.flag("--json", flags->json, "One JSON object");
  line.footer(
      "The context is what grows: state is in proportion to it. Exit code 3 where the total is not there; the message "
      "names the largest context that fits. run, chat and bench refuse what plan refuses.\n\n"
      "Examples:\n  tern plan model.gguf\n  tern plan model.gguf --ctx 32768 --json\n"
      "  tern plan --shape llama-3-8b --format q4_0 --ctx 8192");
  return [flags] { return plan(*flags); };
}

}  // namespace tern::tool
