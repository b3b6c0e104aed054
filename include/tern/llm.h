// Language models: open a model file, run steps of many sequences, generate text.
//
//   auto model = tern::LanguageModel::open("model.gguf");
//   auto ids = model->tokenizer().encode("Once upon a time");
//   auto out = model->generate(*ids, {}, [](const tern::GeneratedToken& t) { std::cout << t.text; return true; });
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/compile.h"
#include "tern/device.h"
#include "tern/import/model_file.h"
#include "tern/llm/tokenizer.h"
#include "tern/session.h"
#include "tern/state/kv.h"

namespace tern {

struct LlmOptions {
  std::string device = "cpu";
  DeviceOptions device_options;
  bool precise = false;        // float activations; slower, closer to exact arithmetic
  std::optional<KvKind> kv;    // how keys and values are kept; by default f16, f32 where `precise`
  uint32_t context = 0;        // tokens a sequence may hold, exactly; 0: the model's own, at most 4096
  uint32_t max_sequences = 1;  // that live at once
  // Tokens of one step at most; longer prompts take several. A device whose bindings hold fewer gets half, a quarter …
  // of them: LanguageModel::chunk() tells.
  uint32_t chunk = 512;
  uint32_t history = 64;                 // last tokens that penalties look at, 0 .. 65536
  std::string cache_dir;                 // as Options::cache_dir
  std::string plugin_path, pack_dir;     // the same
  std::shared_ptr<const Tuning> tuning;  // the same
  Progress progress;                     // while weights are packed
};

// What a model is made of, by its file.
struct LlmInfo {
  std::string architecture, name;
  uint32_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0, vocabulary = 0, context = 0;
  uint64_t parameters = 0, weight_bytes = 0;  // as stored in the file
  std::string chat_template;                  // empty: none
};

// What a model takes before a weight is read; LanguageModel::plan makes it.
struct LlmPlan {
  LlmInfo info;
  uint32_t context = 0;  // tokens that it was planned for
  KvKind kv = KvKind::f16;
  MemoryNeed need;               // on the device
  uint64_t host = 0;             // of the process beside it: the tokenizer
  DeviceMemory memory;           // of the device at the time of planning
  std::optional<Error> refusal;  // where it does not fit: Code::out_of_memory with the largest context that does
  uint64_t total() const { return need.total() + host; }
};

// Settings out of their range (a temperature below 0, top_p of 0, a NaN) are Code::invalid.
struct SamplingOptions {
  float temperature = 0.8f;  // 0: the most probable token
  int32_t top_k = 40;        // 0: all
  float top_p = 0.95f, min_p = 0.05f;
  float repeat_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  uint64_t seed = 0;
};

// One sequence's share of a step.
struct SequenceStep {
  uint32_t sequence = 0;            // a slot below max_sequences
  std::span<const TokenId> tokens;  // appended to the sequence, at least one
  bool sample = true;               // choose the token behind the last one
  SamplingOptions sampling;
  uint64_t draw = 0;                 // number of the token drawn with this seed
  std::span<const TokenId> history;  // what penalties look at, 0 .. 65536
};
struct StepResult {
  TokenId id = kNoToken;      // chosen; kNoToken where `sample` was false
  std::vector<float> logits;  // where asked for
};

struct GenerateOptions {
  uint32_t max_tokens = 256;
  SamplingOptions sampling;
  std::vector<std::string> stop;
  bool ignore_end = false;         // end-of-text tokens do not stop
  bool special_text = false;       // print control tokens
  uint32_t top_logits = 0;         // per step
  std::span<const TokenId> force;  // fed instead of what was chosen, one a step
  // The prompt is all that the sequence shall hold: what it holds of it already is kept, only the rest is fed.
  bool reuse = false;
  const CancelToken* cancel = nullptr;
};
struct GeneratedToken {
  TokenId id = kNoToken;  // chosen
  std::string text;       // whole UTF-8 that became safe to show
  std::vector<std::pair<TokenId, float>> top_logits;
};
enum class StopReason : uint8_t { length, end_token, stop_string, cancelled, context_full };
std::string_view stop_reason_name(StopReason reason);
struct GenerateResult {
  std::vector<TokenId> ids;  // chosen, step by step
  std::string text;
  StopReason reason = StopReason::length;
  double prefill_s = 0, decode_s = 0;
  uint32_t prompt_tokens = 0, decode_steps = 0;
  uint32_t reused_tokens = 0;  // of the prompt, that were there already
};

// Weights, program and sequences of one opened model. Used by one thread at a time.
class LanguageModel {
 public:
  // Checks everything the file says before weights are packed; errors name key, tensor and offset.
  static Result<LanguageModel> open(const std::string& path, const LlmOptions& options = {});
  // The same of a model that is open already, or made in memory; it need not outlive the call.
  static Result<LanguageModel> open(const ModelFile& file, const LlmOptions& options = {});
  // The memory that open() with these options will take. open() refuses what its plan refuses.
  static Result<LlmPlan> plan(const ModelFile& file, const LlmOptions& options = {});
  // Everything open() checks, but no weights and no device.
  static Result<LlmInfo> inspect(const ModelFile& file);
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;
  ~LanguageModel();

  const LlmInfo& info() const;
  const Tokenizer& tokenizer() const;
  const Executable& executable() const;
  Session& session();
  uint32_t context() const;
  uint32_t chunk() const;

  // Forgets a sequence (its pages are free again) or keeps its first `length` tokens.
  Status truncate(uint32_t sequence, uint32_t length);
  uint32_t length(uint32_t sequence) const;
  // What a sequence holds; none for one that is not there.
  std::span<const TokenId> tokens(uint32_t sequence) const;
  // One step over several sequences, each at most once; together at most chunk() tokens. Results in the order of the
  // steps. A step that is refused, cancelled or fails changes no sequence.
  Result<std::vector<StepResult>> step(std::span<const SequenceStep> steps, bool want_logits = false,
                                       const CancelToken* cancel = nullptr);

  // Appends the prompt to the sequence in chunks and generates. `each` sees every token as it comes; false ends
  // generation. The result's text is whole: what was held back for a stop string that did not come stands in it.
  Result<GenerateResult> generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                                  const std::function<bool(const GeneratedToken&)>& each = {}, uint32_t sequence = 0);
  // The same for several prompts side by side, one sequence each, counted from 0.
  Result<std::vector<GenerateResult>> generate_batch(std::span<const std::vector<TokenId>> prompts,
                                                     const GenerateOptions& options);

 private:
  struct Impl;
  explicit LanguageModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What options keep keys and values as.
inline KvKind kv_kind(const std::optional<KvKind>& asked, bool precise) {
  return asked.value_or(precise ? KvKind::f32 : KvKind::f16);
}

// The graph of one step of a model, for verify, explain and own compilations. Inputs: ids, position, slot [T] i32;
// row_start [S+1], kv_length [S], pages [S, P], rows [L] i32; settings [L, 8] f32, history [L, H] i32, seeds [L, 4]
// u32. Outputs: next [L] i32, logits [L, V] f32. States: blk.N.k and blk.N.v, a row a page (tern/state/kv.h).
struct StepShape {
  uint32_t max_tokens = 512, max_sequences = 1, max_rows = 1;
  uint32_t page = 32, pages_per_sequence = 128, history = 64;
  KvKind kv = KvKind::f16;
  bool taps = false;  // outputs "blk.N" of every layer
};
Result<Graph> build_step_graph(const ModelFile& file, const StepShape& shape);
// The ranges that step graphs are compiled for: decode, a few rows, anything.
std::vector<Range> step_ranges(const StepShape& shape);

}  // namespace tern
