#include "llm/models/family.h"

#include "base/platform/within_memory.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/norm.h"
#include "tern/ops/sample.h"

namespace tern::llm {

#define TERN_MODEL(name) extern const ModelFamily name;
#include "llm/models/model_list.inc"
#undef TERN_MODEL

namespace {

constexpr const ModelFamily* kFamilies[] = {
#define TERN_MODEL(name) &name,
#include "llm/models/model_list.inc"
#undef TERN_MODEL
};

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<int64_t> constants(const Shape& shape) {
  std::vector<int64_t> out;
  for (const Dim d : shape) out.push_back(d.constant().value_or(-1));
  return out;
}

}  // namespace

Result<const ModelFamily*> family_of(const ModelFile& file) {
  TERN_TRY(const std::string architecture, file.metadata().string("general.architecture"));
  // A transformation of the weights that is not understood would run and give nonsense.
  for (const std::string& key : file.metadata().keys()) {
    if (key.rfind("prism.hadamard.", 0) == 0) {
      return make_error(Code::unsupported,
                        "the weights are rotated (" + key + "), and this build does not undo hadamard rotations", key);
    }
  }
  std::string known;
  for (const ModelFamily* f : kFamilies) {
    if (f->architecture == architecture) return f;
    known += (known.empty() ? "" : ", ") + std::string(f->architecture);
  }
  return make_error(Code::unsupported, "general.architecture is '" + architecture + "', this build knows: " + known,
                    "general.architecture");
}

Result<const WeightInfo*> tensor(const ModelFile& file, const std::string& name, std::vector<int64_t> shape) {
  TERN_TRY(const WeightInfo* info, file.require(name));
  const std::vector<int64_t> have = constants(info->type.shape);
  if (have != shape)
    return make_error(
        Code::malformed,
        "tensor '" + name + "' has shape " + shape_text(have) + ", the model's keys want " + shape_text(shape),
        info->where);
  const bool vector = shape.size() == 1;
  if (!is_float(info->type.dtype) || info->type.dtype == DType::f64 || (vector && info->type.format != nullptr)) {
    const std::string_view type = info->type.format != nullptr ? info->type.format->name : dtype_name(info->type.dtype);
    return make_error(Code::unsupported,
                      "tensor '" + name + "' has type " + std::string(type) + ", wants " +
                          (vector ? "f32, f16 or bf16" : "a float or block format"),
                      info->where);
  }
  return info;
}

Result<uint32_t> size_key(const ModelFile& file, const std::string& key, uint64_t low, uint64_t high) {
  TERN_TRY(const uint64_t v, file.metadata().u64(key));
  if (v < low || v > high) {
    return make_error(
        Code::malformed,
        key + " = " + std::to_string(v) + ", wants " + std::to_string(low) + " .. " + std::to_string(high), key);
  }
  return static_cast<uint32_t>(v);
}

Result<LlmInfo> general_info(const ModelFile& file) {
  const Metadata& meta = file.metadata();
  LlmInfo info;
  TERN_TRY(info.architecture, meta.string("general.architecture"));
  TERN_TRY(info.name, string_or(meta, "general.name", ""));
  if (meta.has("tokenizer.chat_template")) {
    TERN_TRY(info.chat_template, meta.string("tokenizer.chat_template"));
  }
  for (const WeightInfo& w : file.weights()) {
    uint64_t n = 1;
    for (const int64_t d : constants(w.type.shape)) n *= static_cast<uint64_t>(d);
    info.parameters += n;
    info.weight_bytes += w.bytes;
  }
  return info;
}

StepInputs step_inputs(Builder& b, const StepShape& shape) {
  StepInputs in;
  in.tokens = b.symbol("T", 1, shape.max_tokens);
  const Dim sequences = b.symbol("S", 1, shape.max_sequences);
  in.rows_dim = b.symbol("L", 0, shape.max_rows);
  in.ids = b.input("ids", DType::i32, {in.tokens});
  in.position = b.input("position", DType::i32, {in.tokens});
  in.slot = b.input("slot", DType::i32, {in.tokens});
  in.row_start = b.input("row_start", DType::i32, {b.dims().add(sequences, 1)});
  in.kv_length = b.input("kv_length", DType::i32, {sequences});
  in.pages = b.input("pages", DType::i32, {sequences, shape.pages_per_sequence});
  in.rows = b.input("rows", DType::i32, {in.rows_dim});
  in.settings = b.input("settings", DType::f32, {in.rows_dim, 8});
  in.history = b.input("history", DType::i32, {in.rows_dim, shape.history});
  in.seeds = b.input("seeds", DType::u32, {in.rows_dim, 4});
  return in;
}

void finish_step(Builder& b, const StepInputs& in, Value hidden, Value norm, double eps, Value output_weight) {
  b.scope("output");
  const Value rows = gather(b, hidden, in.rows);
  const Value logits = linear(b, rms_norm(b, rows, norm, eps), output_weight, {}, Precision::high);
  b.output("next", sample(b, logits, in.settings, in.history, in.seeds));
  b.output("logits", logits);
}

Value weight(Builder& b, const WeightInfo& info) {
  return b.param(info.name, info.type.dtype, info.type.shape, info.type.format);
}

}  // namespace tern::llm

namespace tern {

Result<Graph> build_step_graph(const ModelFile& file, const StepShape& shape) try {
  TERN_TRY(const llm::ModelFamily* family, llm::family_of(file));
  return family->build(file, shape);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

std::vector<Range> step_ranges(const StepShape& shape) {
  std::vector<Range> out = {{{"T", 1, 1}, {"S", 1, 1}, {"L", 1, 1}}};
  const int64_t few = 8;
  if (shape.max_tokens > few) out.push_back({{"T", 1, few}, {"L", 0, std::min<int64_t>(few, shape.max_rows)}});
  return out;
}

Result<LlmInfo> LanguageModel::inspect(const ModelFile& file) try {
  TERN_TRY(const llm::ModelFamily* family, llm::family_of(file));
  return family->inspect(file);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
