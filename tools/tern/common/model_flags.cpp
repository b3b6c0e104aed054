#include "tools/tern/common/model_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tools/tern/common/report.h"

namespace tern::tool {

void add_model_flags(CLI::App& app, ModelFlags& flags) {
  app.add_option("model", flags.path, "Model file (GGUF; of a split model any part)")->required();
  app.add_option("--device", flags.device, "Device, as `tern devices` lists them")->capture_default_str();
  app.add_option("-t,--threads", flags.threads, "Threads; 0: the physical cores this process may use")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  app.add_flag("--precise", flags.precise, "Float activations and f32 KV: slower, closer to exact arithmetic");
}

void add_context_flag(CLI::App& app, ModelFlags& flags) {
  app.add_option("--ctx", flags.context,
                 "Tokens that prompt and answer may have together; by default the model's own, at most 4096")
      ->check(CLI::Range(1u, 1u << 30));
}

LlmOptions llm_options(const ModelFlags& flags, uint32_t least_context) {
  LlmOptions options;
  options.device = flags.device;
  options.device_options.threads = flags.threads;
  options.precise = flags.precise;
  options.context = flags.context != 0 ? flags.context : least_context;
  return options;
}

Status check_device(const std::string& spec) {
  std::string known;
  for (const DeviceInfo& device : list_devices()) {
    if (device.spec == spec) {
      if (device.available) return ok();
      return make_error(Code::device_lost, "the device '" + spec + "' is not available: " + device.reason);
    }
    known += (known.empty() ? "" : ", ") + device.spec;
  }
  return make_error(Code::device_lost, "there is no device '" + spec + "'; this build has: " + known);
}

Result<InspectedModel> inspect_model(const std::string& path) {
  TERN_TRY(std::unique_ptr<ModelFile> file, open_model_file(path));
  TERN_TRY(LlmInfo info, LanguageModel::inspect(*file));
  return InspectedModel{std::move(file), std::move(info)};
}

namespace {

// Whether there is nothing wrong with the file, so that an error must come from somewhere else.
bool file_is_good(const std::string& path) {
  const auto model = inspect_model(path);
  if (!model) return false;
  auto data = tokenizer_data(model->file->metadata());
  return data && Tokenizer::create(std::move(*data)).ok();
}

}  // namespace

Result<LanguageModel> open_model(const ModelFlags& flags, uint32_t least_context) {
  TERN_OK(check_device(flags.device));
  ProgressLine progress("loading");
  LlmOptions options = llm_options(flags, least_context);
  options.progress = [&progress](uint64_t done, uint64_t total) { progress.update(done, total); };
  auto model = LanguageModel::open(flags.path, options);
  // Something missing that is not the model file (the code generator, a driver) is a lack of this machine, not of the
  // input.
  if (!model && (model.error().code == Code::not_found || model.error().code == Code::io) && file_is_good(flags.path)) {
    Error error = model.take_error();
    error.code = Code::device_lost;
    return error;
  }
  return model;
}

}  // namespace tern::tool
