// tern info: what a file holds, whether or not this build can run it; and what this build is.
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tern/build.h"
#include "tern/format.h"
#include "tern/llm.h"
#include "tools/tern/common/cache.h"
#include "tools/tern/common/json.h"
#include "tools/tern/common/report.h"

namespace tern::tool {
namespace {

struct InfoFlags {
  std::optional<std::string> path;
  bool build = false, keys = false, tensors = false, json = false;
};

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t n : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

Json build_json() {
  Json formats = Json::array(), devices = Json::array();
  for (const Format* format : all_formats()) formats.push_back(std::string(format->name));
  for (const DeviceInfo& device : list_devices()) devices.push_back(device.spec);
  const BuildInfo build = build_info();
  Json packs = Json::array();
  for (const KernelPackInfo& p : build.packs) {
    packs.push_back({{"level", p.level},
                     {"file", p.path},
                     {"kernels", p.kernels},
                     {"bytes", p.bytes},
                     {"codegen", p.codegen},
                     {"used", p.used},
                     {"refusal", p.refusal.empty() ? Json() : Json(p.refusal)}});
  }
  Json plugin = {{"found", !build.plugin.empty()}, {"name", build.plugin}, {"file", build.plugin_path}};
  plugin["refusal"] = build.plugin_refusal.empty() ? Json() : Json(build.plugin_refusal);
  return {{"version", build.version},      {"compiler", build.compiler},   {"codegen", build.codegen},
          {"levels", build.levels},        {"packs", std::move(packs)},    {"plugin", std::move(plugin)},
          {"formats", std::move(formats)}, {"devices", std::move(devices)}};
}

Json model_json(const LlmInfo& m) {
  return {{"architecture", m.architecture},
          {"name", m.name},
          {"layers", m.layers},
          {"hidden", m.hidden},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"head_size", m.head_size},
          {"ffn", m.ffn},
          {"vocabulary", m.vocabulary},
          {"context", m.context},
          {"parameters", m.parameters},
          {"weight_bytes", m.weight_bytes},
          {"chat_template", !m.chat_template.empty()}};
}

Json file_json(const ModelFile& file, const std::string& path, const Result<LlmInfo>& model) {
  Json keys = Json::array(), tensors = Json::array();
  for (const ListedKey& key : file.list_keys())
    keys.push_back({{"name", key.name}, {"type", key.type}, {"count", key.count}, {"value", key.text}});
  for (const ListedTensor& t : file.list_tensors()) {
    tensors.push_back({{"name", t.name},
                       {"type", t.type},
                       {"shape", t.shape},
                       {"offset", t.offset},
                       {"bytes", t.bytes},
                       {"file", t.file},
                       {"runnable", t.runnable}});
  }
  Json json = {{"file", path},
               {"container", std::string(file.container())},
               {"container_version", file.container_version()},
               {"model", nullptr},
               {"refusal", nullptr}};
  if (model) {
    json["model"] = model_json(*model);
  } else {
    json["refusal"] = model.error().message();
  }
  json["keys"] = std::move(keys);
  json["tensors"] = std::move(tensors);
  return json;
}

void print_model(const LlmInfo& m) {
  std::printf("model       %s (%s)\n", printable(m.name).c_str(), printable(m.architecture).c_str());
  std::printf("parameters  %s in %s\n", human_count(static_cast<double>(m.parameters)).c_str(),
              human_bytes(static_cast<double>(m.weight_bytes)).c_str());
  std::printf("shape       %u layers, hidden %u, %u heads of %u on %u, ffn %u\n", m.layers, m.hidden, m.heads,
              m.head_size, m.kv_heads, m.ffn);
  std::printf("vocabulary  %u tokens\ncontext     %u tokens\nchat        %s\n", m.vocabulary, m.context,
              m.chat_template.empty() ? "no template" : "has a template (run --chat)");
}

void print_file(const ModelFile& file, const std::string& path, const Result<LlmInfo>& model, const InfoFlags& flags) {
  const std::vector<ListedTensor> tensors = file.list_tensors();
  std::printf("file        %s\ncontainer   %s version %u\n", printable(path, 4096).c_str(),
              std::string(file.container()).c_str(), file.container_version());
  if (model) {
    print_model(*model);
  } else {
    std::printf("model       cannot be run: %s\n", printable(model.error().message(), 1000).c_str());
  }
  struct Sum {
    size_t count = 0;
    double bytes = 0;
    bool runnable = true;
  };
  std::map<std::string, Sum> types;
  for (const ListedTensor& t : tensors) {
    Sum& sum = types[t.type];
    ++sum.count;
    sum.bytes += static_cast<double>(t.bytes);
    sum.runnable = t.runnable;
  }
  std::printf("tensors     %zu\n", tensors.size());
  for (const auto& [type, sum] : types) {
    std::printf("  %-9s %6zu  %s%s\n", printable(type).c_str(), sum.count, human_bytes(sum.bytes).c_str(),
                sum.runnable ? "" : "  (this build lacks the type)");
  }
  if (flags.tensors) {
    for (const ListedTensor& t : tensors) {
      std::printf("  %-40s %-8s %-20s %s\n", printable(t.name, 200).c_str(), printable(t.type).c_str(),
                  shape_text(t.shape).c_str(), human_bytes(static_cast<double>(t.bytes)).c_str());
    }
  }
  const std::vector<ListedKey> keys = file.list_keys(100);
  std::printf("keys        %zu\n", keys.size());
  if (flags.keys) {
    for (const ListedKey& key : keys)
      std::printf("  %-44s %-9s %s\n", printable(key.name, 200).c_str(), key.type.c_str(),
                  printable(key.text, 100).c_str());
  }
}

void print_packs(const BuildInfo& build) {
  if (build.packs.empty()) std::printf("packs       none: kernels are compiled when a model is opened\n");
  for (const KernelPackInfo& p : build.packs) {
    if (!p.refusal.empty()) {
      std::printf("pack        %-24s refused: %s\n", printable(p.level).c_str(), printable(p.refusal, 1000).c_str());
      continue;
    }
    std::printf("pack        %-24s %4u kernels, %s%s\n", printable(p.level).c_str(), p.kernels,
                human_bytes(static_cast<double>(p.bytes)).c_str(), p.used ? ", for this processor" : "");
  }
}

void print_build() {
  const BuildInfo build = build_info();
  std::printf("tern        %s\ncompiler    %s\ncodegen     %s\n", build.version.c_str(), build.compiler.c_str(),
              build.codegen.c_str());
  if (build.plugin.empty())
    std::printf("plug-in     none: %s\n", printable(build.plugin_refusal, 1000).c_str());
  else
    std::printf("plug-in     %s, %s\n", build.plugin.c_str(), printable(build.plugin_path, 4096).c_str());
  print_packs(build);
  std::printf("formats    ");
  for (const Format* format : all_formats()) std::printf(" %s", std::string(format->name).c_str());
  std::printf("\ndevices    ");
  for (const DeviceInfo& device : list_devices()) std::printf(" %s", device.spec.c_str());
  std::printf("\n");
}

int info(const InfoFlags& flags) {
  if (!flags.path && !flags.build) return wrong_use("give a model file, or --build for this program itself");
  if (flags.json && (flags.keys || flags.tensors))
    return wrong_use("--json always lists keys and tensors; leave --keys and --tensors away");
  if (!flags.path && (flags.keys || flags.tensors)) return wrong_use("--keys and --tensors want a model file");
  Json json = Json::object();
  if (flags.path) {
    const auto file = open_named_model(*flags.path);
    if (!file) return fail(file.error());
    const auto model = LanguageModel::inspect(**file);
    if (flags.json) {
      json = file_json(**file, *flags.path, model);
    } else {
      print_file(**file, *flags.path, model, flags);
    }
  }
  if (flags.build && !flags.json) print_build();
  if (flags.build) json["build"] = build_json();
  if (flags.json) print_json(json);
  return kFine;
}

}  // namespace

Action add_info(CommandLine& line) {
  auto flags = std::make_shared<InfoFlags>();
  line.option("model", flags->path, "Model file, or the name of a pulled one");
  line.flag("--keys", flags->keys, "List every key");
  line.flag("--tensors", flags->tensors, "List every tensor");
  line.flag("--build", flags->build,
            "Tell version, compiled kernels, code generator, formats and devices of this build");
  line.flag("--json", flags->json, "One JSON object, with all keys and tensors");
  line.footer(
      "Examples:\n  tern info model.gguf\n  tern info model.gguf --keys --tensors\n  tern info model.gguf --json\n  "
      "tern info --build");
  return [flags] { return info(*flags); };
}

}  // namespace tern::tool
