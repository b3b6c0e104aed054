// The options that every verb shares which opens a model for running.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tern/llm.h"
#include "tools/tern/common/verb.h"

namespace tern::tool {

struct ModelFlags {
  std::string path, device = "cpu";
  unsigned threads = 0;
  uint32_t context = 0, sequences = 1;
  bool precise = false;
  bool no_llvm = false, no_packs = false, no_tuning = false;
  std::shared_ptr<const Tuning> tuning;  // instead of what the user keeps
  std::optional<KvKind> kv;
  std::string shape, format = "q4_0", embedding_format;  // instead of a path: a model made in memory
};
void add_model_flags(CommandLine& line, ModelFlags& flags);
// The same, and --shape with its formats instead of a file.
void add_model_or_shape_flags(CommandLine& line, ModelFlags& flags);
// --no-llvm, --no-packs and --no-tuning, of verbs that make kernels.
void add_kernel_flags(CommandLine& line, ModelFlags& flags);
// What these flags say in Options and LlmOptions.
std::string plugin_choice(const ModelFlags& flags);
std::string pack_choice(const ModelFlags& flags);
std::shared_ptr<const Tuning> tuning_choice(const ModelFlags& flags);
// On stderr: what the user of a compiled model should know of its kernels.
void tell_notes(const Executable& executable);
void add_context_flag(CommandLine& line, ModelFlags& flags);  // of verbs whose sequences may be of any length

// `least_context`: what the verb itself needs where --ctx is not given.
LlmOptions llm_options(const ModelFlags& flags, uint32_t least_context = 0);

// Refuses a device that this machine lacks before anything else is done: Code::device_lost, so that it is told from a
// missing file.
Status check_device(const std::string& spec);

// The file, or the model made in memory where --shape asks for one.
Result<std::unique_ptr<ModelFile>> open_source(const ModelFlags& flags);
// `--shape list`.
int list_shapes(bool json);

// Opens with a progress line.
Result<LanguageModel> open_model(const ModelFlags& flags, uint32_t least_context = 0);
Result<LanguageModel> open_model(const ModelFlags& flags, const ModelFile& source, uint32_t least_context = 0);

// The file and what is checked without its weights.
struct InspectedModel {
  std::unique_ptr<ModelFile> file;
  LlmInfo info;
};
Result<InspectedModel> inspect_model(const std::string& path);

}  // namespace tern::tool
