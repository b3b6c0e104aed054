#include "tools/tern/flags/model_flags.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tern/llm/synthetic.h"
#include "tools/tern/common/cache.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"

namespace tern::tool {

namespace {

constexpr const char* kModelHelp = "Model file (GGUF; of a split model any part), or the name of a pulled one";

void add_device_flags(CommandLine& line, ModelFlags& flags) {
  line.option("--device", flags.device, "Device, as `tern devices` lists them").shows_default();
  line.option("-t,--threads", flags.threads, "Threads; 0: the physical cores this process may use")
      .shows_default()
      .between(0, 1024);
  line.flag("--precise", flags.precise,
            "Float activations, and f32 KV unless --kv says otherwise: slower, closer to exact arithmetic");
  std::vector<std::string> kinds;
  for (const KvKind kind : kKvKinds) kinds.emplace_back(kv_kind_name(kind));
  line.option(
          "--kv", [&flags](const std::string& name) { flags.kv = kv_kind_by_name(name); },
          "Keys and values of the context as f32, f16, bf16, q8 or q4: fewer bytes leave room for longer contexts "
          "and take less time to read; by default f16")
      .one_of(kinds);
}

}  // namespace

void add_model_flags(CommandLine& line, ModelFlags& flags) {
  line.option("model", flags.path, kModelHelp).required();
  add_device_flags(line, flags);
}

void add_model_or_shape_flags(CommandLine& line, ModelFlags& flags) {
  const Option model = line.option("model", flags.path, kModelHelp);
  const Option shape =
      line.option("--shape", flags.shape,
                  "Instead of a file: a model of this shape with random weights, made in memory; 'list' tells which")
          .excludes(model);
  line.option("--format", flags.format, "With --shape: format of all matrices (`tern info --build` lists them)")
      .shows_default()
      .needs(shape);
  line.option("--embedding-format", flags.embedding_format,
              "With --shape: format of the embedding table and of the output matrix; by default as --format")
      .needs(shape);
  add_device_flags(line, flags);
}

void add_kernel_flags(CommandLine& line, ModelFlags& flags) {
  line.flag("--no-llvm", flags.no_llvm, "Leave the code generator alone: kernels that are not there are interpreted");
  line.flag("--no-packs", flags.no_packs, "Leave the kernels alone that were compiled with this build");
  line.flag("--no-tuning", flags.no_tuning, "Leave alone what `tern tune` found: the usual variants of kernels");
}

std::string plugin_choice(const ModelFlags& flags) { return flags.no_llvm ? "none" : ""; }
std::string pack_choice(const ModelFlags& flags) { return flags.no_packs ? "none" : ""; }
std::shared_ptr<const Tuning> tuning_choice(const ModelFlags& flags) {
  return flags.no_tuning ? std::make_shared<const Tuning>() : flags.tuning;
}

void tell_notes(const Executable& executable) {
  for (const std::string& note : executable.timings().notes) complain(note);
}

void add_context_flag(CommandLine& line, ModelFlags& flags) {
  line.option("--ctx", flags.context,
              "Tokens that prompt and answer may have together; by default the model's own, at most 4096")
      .between(1, 1u << 30);
}

LlmOptions llm_options(const ModelFlags& flags, uint32_t least_context) {
  LlmOptions options;
  options.device = flags.device;
  options.device_options.threads = flags.threads;
  options.precise = flags.precise;
  options.plugin_path = plugin_choice(flags);
  options.pack_dir = pack_choice(flags);
  options.tuning = tuning_choice(flags);
  options.kv = flags.kv;
  options.max_sequences = flags.sequences;
  options.context = flags.context != 0 ? flags.context : least_context;
  return options;
}

Status check_device(const std::string& spec) {
  const auto device = describe_device(spec);
  if (!device) return make_error(Code::device_lost, device.error().text);
  if (device->available) return ok();
  return make_error(Code::device_lost, "the device '" + spec + "' is not available: " + device->reason);
}

Result<InspectedModel> inspect_model(const std::string& path) {
  TERN_TRY(std::unique_ptr<ModelFile> file, open_named_model(path));
  TERN_TRY(LlmInfo info, LanguageModel::inspect(*file));
  return InspectedModel{std::move(file), std::move(info)};
}

namespace {

Result<const Format*> format_named(const std::string& name) {
  if (const Format* format = format_by_name(name)) return format;
  std::string known;
  for (const Format* format : all_formats()) known += (known.empty() ? "" : ", ") + std::string(format->name);
  return make_error(Code::invalid, "this build has no format '" + printable(name) + "'; it has: " + known);
}

// Whether there is nothing wrong with the file, so that an error must come from somewhere else.
bool file_is_good(const ModelFile& file) {
  if (!LanguageModel::inspect(file)) return false;
  auto data = tokenizer_data(file.metadata());
  return data && Tokenizer::create(std::move(*data)).ok();
}

}  // namespace

Result<std::unique_ptr<ModelFile>> open_source(const ModelFlags& flags) {
  if (flags.shape.empty()) {
    if (flags.path.empty()) return make_error(Code::invalid, "give a model file, or --shape for one made in memory");
    return open_named_model(flags.path);
  }
  auto shape = model_shape(flags.shape);
  if (!shape) return make_error(Code::invalid, shape.error().text);
  SyntheticOptions options;
  TERN_TRY(options.matrices, format_named(flags.format));
  if (!flags.embedding_format.empty()) {
    TERN_TRY(options.embedding, format_named(flags.embedding_format));
  }
  return make_synthetic_model(**shape, options);
}

int list_shapes(bool json) {
  Json list = Json::array();
  for (const ModelShape& s : model_shapes()) {
    if (!json) {
      std::printf("%-16s %-6s %7s parameters, %2u layers, hidden %u, %u heads of %u on %u, ffn %u, vocabulary %u%s\n",
                  std::string(s.name).c_str(), std::string(s.architecture).c_str(),
                  human_count(static_cast<double>(s.parameters())).c_str(), s.layers, s.hidden, s.heads, s.head_size,
                  s.kv_heads, s.ffn, s.vocabulary, s.tied ? ", tied" : "");
    }
    list.push_back({{"name", std::string(s.name)},
                    {"architecture", std::string(s.architecture)},
                    {"parameters", s.parameters()},
                    {"layers", s.layers},
                    {"hidden", s.hidden},
                    {"heads", s.heads},
                    {"kv_heads", s.kv_heads},
                    {"head_size", s.head_size},
                    {"ffn", s.ffn},
                    {"vocabulary", s.vocabulary},
                    {"context", s.context},
                    {"tied", s.tied}});
  }
  if (json) print_json({{"shapes", std::move(list)}});
  return kFine;
}

Result<LanguageModel> open_model(const ModelFlags& flags, uint32_t least_context) {
  TERN_OK(check_device(flags.device));
  TERN_TRY(const std::unique_ptr<ModelFile> source, open_source(flags));
  return open_model(flags, *source, least_context);
}

Result<LanguageModel> open_model(const ModelFlags& flags, const ModelFile& source, uint32_t least_context) {
  TERN_OK(check_device(flags.device));
  ProgressLine progress("loading");
  LlmOptions options = llm_options(flags, least_context);
  options.progress = [&progress](uint64_t done, uint64_t total) { progress.update(done, total); };
  auto model = LanguageModel::open(source, options);
  // Something missing that is not the model file (the code generator, a driver) is a lack of this machine, not of the
  // input.
  if (!model && (model.error().code == Code::not_found || model.error().code == Code::io) && file_is_good(source)) {
    Error error = model.take_error();
    error.code = Code::device_lost;
    return error;
  }
  progress.clear();
  if (model) tell_notes(model->executable());
  return model;
}

}  // namespace tern::tool
