// The llama family (Touvron et al. 2023): pre-norm blocks, grouped-query attention with rotary positions on
// neighbouring pairs, SwiGLU. Keys "llama.*" and tensor names as GGUF writes them.
#include <cmath>

#include "llm/models/family.h"
#include "tern/ops/attention.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/norm.h"
#include "tern/ops/shape.h"

namespace tern::llm {
namespace {

struct Hyper {
  LlmInfo info;
  double eps = 0;
  RopeOptions rope;
  bool tied = false, freq_factors = false;
};

std::string block(uint32_t layer, std::string_view name) {
  return "blk." + std::to_string(layer) + "." + std::string(name) + ".weight";
}

Status read_heads(const ModelFile& file, Hyper& h) {
  const Metadata& meta = file.metadata();
  LlmInfo& i = h.info;
  TERN_TRY(i.heads, size_key(file, "llama.attention.head_count", 1, 4096));
  i.kv_heads = i.heads;
  if (meta.has("llama.attention.head_count_kv")) {
    TERN_TRY(i.kv_heads, size_key(file, "llama.attention.head_count_kv", 1, 4096));
  }
  if (i.heads % i.kv_heads != 0) {
    return make_error(Code::malformed,
                      "llama.attention.head_count = " + std::to_string(i.heads) +
                          " is no multiple of head_count_kv = " + std::to_string(i.kv_heads),
                      "llama.attention.head_count_kv");
  }
  if (meta.has("llama.attention.key_length")) {
    TERN_TRY(i.head_size, size_key(file, "llama.attention.key_length", 2, 1024));
    TERN_TRY(const uint64_t value_size, u64_or(meta, "llama.attention.value_length", i.head_size));
    if (value_size != i.head_size)
      return make_error(Code::unsupported, "llama.attention.value_length differs from key_length",
                        "llama.attention.value_length");
  } else {
    if (i.hidden % i.heads != 0) {
      return make_error(Code::malformed,
                        "llama.embedding_length = " + std::to_string(i.hidden) +
                            " is no multiple of llama.attention.head_count = " + std::to_string(i.heads),
                        "llama.embedding_length");
    }
    i.head_size = i.hidden / i.heads;
  }
  return ok();
}

Status read_rope(const ModelFile& file, Hyper& h) {
  const Metadata& meta = file.metadata();
  h.rope.pairing = RopeOptions::Pairing::neighbour;
  TERN_TRY(const uint64_t rotary, u64_or(meta, "llama.rope.dimension_count", h.info.head_size));
  if (rotary == 0 || rotary % 2 != 0 || rotary > h.info.head_size) {
    return make_error(Code::malformed,
                      "llama.rope.dimension_count = " + std::to_string(rotary) +
                          ", wants an even number up to the head size " + std::to_string(h.info.head_size),
                      "llama.rope.dimension_count");
  }
  h.rope.rotary = static_cast<int64_t>(rotary);
  TERN_TRY(h.rope.base, f64_or(meta, "llama.rope.freq_base", 10000.0));
  if (!(h.rope.base > 0) || !std::isfinite(h.rope.base))
    return make_error(Code::malformed,
                      "llama.rope.freq_base = " + std::to_string(h.rope.base) + ", wants a positive number",
                      "llama.rope.freq_base");
  TERN_TRY(const std::string scaling, string_or(meta, "llama.rope.scaling.type", "none"));
  TERN_TRY(h.rope.factor, f64_or(meta, "llama.rope.scaling.factor", 1.0));
  if (!(h.rope.factor > 0) || !std::isfinite(h.rope.factor))
    return make_error(Code::malformed, "llama.rope.scaling.factor wants a positive number",
                      "llama.rope.scaling.factor");
  if (scaling == "linear")
    h.rope.scale = RopeOptions::Scale::linear;
  else if (scaling == "yarn") {
    h.rope.scale = RopeOptions::Scale::yarn;
    TERN_TRY(h.rope.original_context, f64_or(meta, "llama.rope.scaling.original_context_length", h.info.context));
    h.rope.attention_factor = 0.1 * std::log(h.rope.factor) + 1;
  } else if (scaling != "none") {
    return make_error(Code::unsupported, "llama.rope.scaling.type is '" + scaling + "', wants none, linear or yarn",
                      "llama.rope.scaling.type");
  }
  h.freq_factors = file.find("rope_freqs.weight") != nullptr;
  return ok();
}

Result<Hyper> read_keys(const ModelFile& file) {
  const Metadata& meta = file.metadata();
  Hyper h;
  TERN_TRY(h.info, general_info(file));
  LlmInfo& i = h.info;
  TERN_TRY(i.layers, size_key(file, "llama.block_count", 1, file.list_tensors().size()));
  TERN_TRY(i.hidden, size_key(file, "llama.embedding_length", 1, 1 << 20));
  TERN_TRY(i.context, size_key(file, "llama.context_length", 1, 1u << 30));
  TERN_TRY(i.ffn, size_key(file, "llama.feed_forward_length", 1, 1 << 24));
  TERN_OK(read_heads(file, h));
  TERN_OK(read_rope(file, h));
  TERN_TRY(h.eps, meta.f64("llama.attention.layer_norm_rms_epsilon"));
  if (!(h.eps >= 0) || !std::isfinite(h.eps))
    return make_error(Code::malformed, "llama.attention.layer_norm_rms_epsilon is no finite number of 0 or more",
                      "llama.attention.layer_norm_rms_epsilon");
  TERN_TRY(const uint64_t experts, u64_or(meta, "llama.expert_count", 0));
  if (experts > 0)
    return make_error(Code::unsupported,
                      "llama.expert_count = " + std::to_string(experts) + ": this build runs no mixtures of experts",
                      "llama.expert_count");
  TERN_TRY(const WeightInfo* embedding, file.require("token_embd.weight"));
  if (embedding->type.shape.size() != 2)
    return make_error(Code::malformed, "tensor 'token_embd.weight' wants two dimensions", embedding->where);
  i.vocabulary = static_cast<uint32_t>(embedding->type.shape[0].constant().value_or(0));
  TERN_TRY(const uint64_t vocabulary, u64_or(meta, "llama.vocab_size", i.vocabulary));
  TERN_TRY(const std::vector<std::string> tokens, meta.strings("tokenizer.ggml.tokens"));
  if (vocabulary != i.vocabulary || tokens.size() != i.vocabulary) {
    return make_error(Code::malformed,
                      "the vocabulary disagrees: tokenizer.ggml.tokens has " + std::to_string(tokens.size()) +
                          ", llama.vocab_size says " + std::to_string(vocabulary) + ", token_embd.weight has " +
                          std::to_string(i.vocabulary) + " rows",
                      embedding->where);
  }
  h.tied = file.find("output.weight") == nullptr;
  for (const ListedTensor& t : file.list_tensors()) {
    if (t.name == "output.weight") h.tied = false;
  }
  return h;
}

Status check_tensors(const ModelFile& file, const Hyper& h) {
  const LlmInfo& i = h.info;
  const int64_t d = i.hidden, q = int64_t{i.heads} * i.head_size, kv = int64_t{i.kv_heads} * i.head_size, f = i.ffn;
  TERN_OK(tensor(file, "token_embd.weight", {i.vocabulary, d}));
  TERN_OK(tensor(file, "output_norm.weight", {d}));
  if (!h.tied) TERN_OK(tensor(file, "output.weight", {i.vocabulary, d}));
  if (h.freq_factors) TERN_OK(tensor(file, "rope_freqs.weight", {h.rope.rotary / 2}));
  for (uint32_t l = 0; l < i.layers; ++l) {
    TERN_OK(tensor(file, block(l, "attn_norm"), {d}));
    TERN_OK(tensor(file, block(l, "attn_q"), {q, d}));
    TERN_OK(tensor(file, block(l, "attn_k"), {kv, d}));
    TERN_OK(tensor(file, block(l, "attn_v"), {kv, d}));
    TERN_OK(tensor(file, block(l, "attn_output"), {d, q}));
    TERN_OK(tensor(file, block(l, "ffn_norm"), {d}));
    TERN_OK(tensor(file, block(l, "ffn_gate"), {f, d}));
    TERN_OK(tensor(file, block(l, "ffn_up"), {f, d}));
    TERN_OK(tensor(file, block(l, "ffn_down"), {d, f}));
  }
  return ok();
}

Result<Hyper> read(const ModelFile& file) {
  TERN_TRY(Hyper h, read_keys(file));
  TERN_OK(check_tensors(file, h));
  return h;
}

Result<LlmInfo> inspect(const ModelFile& file) {
  TERN_TRY(Hyper h, read(file));
  return std::move(h.info);
}

// A vector parameter as f32.
Value vector(Builder& b, const ModelFile& file, const std::string& name) {
  const Value w = weight(b, *file.find(name));
  return b.type(w).dtype == DType::f32 ? w : cast(b, w, DType::f32);
}

Value attention_block(Builder& b, const ModelFile& file, const Hyper& h, const StepInputs& in, const StepShape& shape,
                      uint32_t l, Value factors, Value x) {
  const LlmInfo& i = h.info;
  const auto param = [&](std::string_view name) { return weight(b, *file.find(block(l, name))); };
  // What attention compares is the most sensitive to rounding: a third of the logits' deviation at a sixth of the work.
  const auto project = [&](Value n, std::string_view part) { return linear(b, n, param(part), {}, Precision::high); };
  const std::string name = "blk." + std::to_string(l);
  const Dim slots = int64_t{shape.max_sequences} * shape.pages_per_sequence * shape.page;
  const Value n = rms_norm(b, x, vector(b, file, block(l, "attn_norm")), h.eps);
  const auto heads = [&](Value v, uint32_t count) { return reshape(b, v, {in.tokens, count, i.head_size}); };
  const Value q = rope(b, heads(project(n, "attn_q"), i.heads), in.position, h.rope, factors);
  const Value k = rope(b, heads(project(n, "attn_k"), i.kv_heads), in.position, h.rope, factors);
  const Value v = heads(project(n, "attn_v"), i.kv_heads);
  const Value k_state = b.state(name + ".k", shape.kv, {slots, i.kv_heads, i.head_size});
  const Value v_state = b.state(name + ".v", shape.kv, {slots, i.kv_heads, i.head_size});
  PagedKv kv;
  kv.k_state = store_rows(b, k_state, in.slot, k);
  kv.v_state = store_rows(b, v_state, in.slot, v);
  b.update(name + ".k", kv.k_state);
  b.update(name + ".v", kv.v_state);
  kv.row_start = in.row_start;
  kv.kv_length = in.kv_length;
  kv.pages = in.pages;
  kv.position = in.position;
  kv.page = shape.page;
  AttentionOptions options;
  options.scale = 1.0 / std::sqrt(static_cast<double>(i.head_size));
  const Value a = attention(b, q, kv, options);
  const Value flat = reshape(b, a, {in.tokens, int64_t{i.heads} * i.head_size});
  return add(b, x, linear(b, flat, param("attn_output")));
}

Value ffn_block(Builder& b, const ModelFile& file, const Hyper& h, uint32_t l, Value x) {
  const auto param = [&](std::string_view name) { return weight(b, *file.find(block(l, name))); };
  const Value n = rms_norm(b, x, vector(b, file, block(l, "ffn_norm")), h.eps);
  const Value gated = mul(b, silu(b, linear(b, n, param("ffn_gate"))), linear(b, n, param("ffn_up")));
  return add(b, x, linear(b, gated, param("ffn_down")));
}

Result<Graph> build(const ModelFile& file, const StepShape& shape) {
  TERN_TRY(const Hyper h, read(file));
  Builder b;
  const StepInputs in = step_inputs(b, shape);
  b.scope("token_embd");
  const Value table = weight(b, *file.find("token_embd.weight"));
  Value x = embedding(b, table, in.ids);
  if (!b.failed() && b.type(x).dtype != DType::f32) x = cast(b, x, DType::f32);
  const Value factors = h.freq_factors ? vector(b, file, "rope_freqs.weight") : Value{};
  for (uint32_t l = 0; l < h.info.layers; ++l) {
    const std::string name = "blk." + std::to_string(l);
    b.scope(name + ".attn");
    x = attention_block(b, file, h, in, shape, l, factors, x);
    b.scope(name + ".ffn");
    x = ffn_block(b, file, h, l, x);
    if (shape.taps) b.output(name, x);
  }
  b.scope("output");
  const Value norm = vector(b, file, "output_norm.weight");
  const Value output = h.tied ? table : weight(b, *file.find("output.weight"));
  finish_step(b, in, x, norm, h.eps, output);
  return b.finish();
}

}  // namespace

extern const ModelFamily kLlamaFamily;
const ModelFamily kLlamaFamily = {"llama", inspect, build};

}  // namespace tern::llm
