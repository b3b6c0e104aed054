#include "llm/models/decoder.h"

#include <cmath>

#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/norm.h"
#include "tern/ops/shape.h"

namespace tern::llm {
namespace {

Status read_heads(const ModelFile& file, Hyper& h) {
  const Metadata& meta = file.metadata();
  LlmInfo& i = h.info;
  const std::string count = key_of(h, "attention.head_count"), kv_count = key_of(h, "attention.head_count_kv");
  const std::string key_length = key_of(h, "attention.key_length"), value = key_of(h, "attention.value_length");
  TERN_TRY(i.heads, size_key(file, count, 1, 4096));
  i.kv_heads = i.heads;
  if (meta.has(kv_count)) {
    TERN_TRY(i.kv_heads, size_key(file, kv_count, 1, 4096));
  }
  if (i.heads % i.kv_heads != 0) {
    return make_error(
        Code::malformed,
        count + " = " + std::to_string(i.heads) + " is no multiple of head_count_kv = " + std::to_string(i.kv_heads),
        kv_count);
  }
  if (meta.has(key_length)) {
    TERN_TRY(i.head_size, size_key(file, key_length, 2, 1024));
    TERN_TRY(const uint64_t value_size, u64_or(meta, value, i.head_size));
    if (value_size != i.head_size) return make_error(Code::unsupported, value + " differs from key_length", value);
  } else {
    const std::string hidden = key_of(h, "embedding_length");
    if (i.hidden % i.heads != 0) {
      return make_error(
          Code::malformed,
          hidden + " = " + std::to_string(i.hidden) + " is no multiple of " + count + " = " + std::to_string(i.heads),
          hidden);
    }
    i.head_size = i.hidden / i.heads;
  }
  return ok();
}

Status read_rope(const ModelFile& file, Hyper& h) {
  const Metadata& meta = file.metadata();
  const std::string dimension = key_of(h, "rope.dimension_count"), type = key_of(h, "rope.scaling.type");
  TERN_TRY(const uint64_t rotary, u64_or(meta, dimension, h.info.head_size));
  if (rotary == 0 || rotary % 2 != 0 || rotary > h.info.head_size) {
    return make_error(Code::malformed,
                      dimension + " = " + std::to_string(rotary) + ", wants an even number up to the head size " +
                          std::to_string(h.info.head_size),
                      dimension);
  }
  h.rope.rotary = static_cast<int64_t>(rotary);
  TERN_TRY(h.rope.base, positive_key(file, key_of(h, "rope.freq_base"), 10000.0));
  TERN_TRY(const std::string scaling, string_or(meta, type, "none"));
  TERN_TRY(h.rope.factor, positive_key(file, key_of(h, "rope.scaling.factor"), 1.0));
  if (scaling == "linear")
    h.rope.scale = RopeOptions::Scale::linear;
  else if (scaling == "yarn") {
    h.rope.scale = RopeOptions::Scale::yarn;
    TERN_TRY(h.rope.original_context, f64_or(meta, key_of(h, "rope.scaling.original_context_length"), h.info.context));
    h.rope.attention_factor = 0.1 * std::log(h.rope.factor) + 1;
  } else if (scaling != "none") {
    return make_error(Code::unsupported, type + " is '" + scaling + "', wants none, linear or yarn", type);
  }
  h.freq_factors = file.find("rope_freqs.weight") != nullptr;
  return ok();
}

Status read_vocabulary(const ModelFile& file, Hyper& h) {
  const Metadata& meta = file.metadata();
  LlmInfo& i = h.info;
  TERN_TRY(const WeightInfo* embedding, file.require("token_embd.weight"));
  if (embedding->type.shape.size() != 2)
    return make_error(Code::malformed, "tensor 'token_embd.weight' wants two dimensions", embedding->where);
  i.vocabulary = static_cast<uint32_t>(embedding->type.shape[0].constant().value_or(0));
  TERN_TRY(const uint64_t vocabulary, u64_or(meta, key_of(h, "vocab_size"), i.vocabulary));
  TERN_TRY(const std::vector<std::string> tokens, meta.strings("tokenizer.ggml.tokens"));
  if (vocabulary != i.vocabulary || tokens.size() != i.vocabulary) {
    return make_error(Code::malformed,
                      "the vocabulary disagrees: tokenizer.ggml.tokens has " + std::to_string(tokens.size()) + ", " +
                          key_of(h, "vocab_size") + " says " + std::to_string(vocabulary) + ", token_embd.weight has " +
                          std::to_string(i.vocabulary) + " rows",
                      embedding->where);
  }
  return ok();
}

// A vector parameter as f32.
Value vector(Builder& b, const ModelFile& file, const std::string& name) {
  const Value w = weight(b, *file.find(name));
  return b.type(w).dtype == DType::f32 ? w : cast(b, w, DType::f32);
}

}  // namespace

std::string block(uint32_t layer, std::string_view name) {
  return "blk." + std::to_string(layer) + "." + std::string(name) + ".weight";
}

std::string key_of(const Hyper& h, std::string_view name) { return h.info.architecture + "." + std::string(name); }

Result<double> positive_key(const ModelFile& file, const std::string& key, double fallback) {
  TERN_TRY(const double v, f64_or(file.metadata(), key, fallback));
  if (!(v > 0) || !std::isfinite(v))
    return make_error(Code::malformed, key + " = " + std::to_string(v) + ", wants a positive number", key);
  return v;
}

Result<Hyper> read_hyper(const ModelFile& file, RopeOptions::Pairing pairing) {
  const Metadata& meta = file.metadata();
  Hyper h;
  TERN_TRY(h.info, general_info(file));
  LlmInfo& i = h.info;
  h.rope.pairing = pairing;
  TERN_TRY(i.layers, size_key(file, key_of(h, "block_count"), 1, file.list_tensors().size()));
  TERN_TRY(i.hidden, size_key(file, key_of(h, "embedding_length"), 1, 1 << 20));
  TERN_TRY(i.context, size_key(file, key_of(h, "context_length"), 1, 1u << 30));
  TERN_TRY(i.ffn, size_key(file, key_of(h, "feed_forward_length"), 1, 1 << 24));
  TERN_OK(read_heads(file, h));
  TERN_OK(read_rope(file, h));
  const std::string eps = key_of(h, "attention.layer_norm_rms_epsilon"), expert_count = key_of(h, "expert_count");
  TERN_TRY(h.eps, meta.f64(eps));
  if (!(h.eps >= 0) || !std::isfinite(h.eps))
    return make_error(Code::malformed, eps + " is no finite number of 0 or more", eps);
  TERN_TRY(const uint64_t experts, u64_or(meta, expert_count, 0));
  if (experts > 0)
    return make_error(Code::unsupported,
                      expert_count + " = " + std::to_string(experts) + ": this build runs no mixtures of experts",
                      expert_count);
  TERN_OK(read_vocabulary(file, h));
  h.tied = file.find("output.weight") == nullptr;
  for (const ListedTensor& t : file.list_tensors()) {
    if (t.name == "output.weight") h.tied = false;
  }
  return h;
}

Status check_tensors(const ModelFile& file, const Hyper& h, const std::vector<VectorTensor>& own) {
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
    for (const VectorTensor& v : own) TERN_OK(tensor(file, block(l, v.name), {v.size}));
  }
  return ok();
}

Value Step::param(uint32_t layer, std::string_view name) const { return weight(b, *file.find(block(layer, name))); }

Value Step::norm(Value x, uint32_t layer, std::string_view name) const {
  return rms_norm(b, x, vector(b, file, block(layer, name)), h.eps);
}

Value attention_part(const Step& step, uint32_t layer, Value normed, const AttentionLayer& how) {
  Builder& b = step.b;
  const LlmInfo& i = step.h.info;
  const StepInputs& in = step.in;
  const std::string name = "blk." + std::to_string(layer);
  const int64_t pages = int64_t{step.shape.max_sequences} * step.shape.pages_per_sequence;
  const auto project = [&](std::string_view part, uint32_t count) {
    const Value v = linear(b, normed, step.param(layer, part), {}, how.precision);
    return reshape(b, v, {in.tokens, count, i.head_size});
  };
  const auto turned = [&](Value heads, std::string_view norm) {
    if (how.head_norms) heads = step.norm(heads, layer, norm);
    return rope(b, heads, in.position, how.rope, step.factors);
  };
  const Value q = turned(project("attn_q", i.heads), "attn_q_norm");
  const Value k = turned(project("attn_k", i.kv_heads), "attn_k_norm");
  const Value v = project("attn_v", i.kv_heads);
  const auto stored = [&](const std::string& state, Value rows, bool keys) {
    const KvKind kind = step.shape.kv;
    const Value before = kv_state(b, state, kind, keys, pages, i.kv_heads, i.head_size, step.shape.page);
    const Value next = store_kv(b, before, in.slot, rows, kind, keys, step.shape.page);
    b.update(state, next);
    return next;
  };
  PagedKv kv;
  kv.k_state = stored(name + ".k", k, true);
  kv.v_state = stored(name + ".v", v, false);
  kv.kind = step.shape.kv;
  kv.row_start = in.row_start;
  kv.kv_length = in.kv_length;
  kv.pages = in.pages;
  kv.position = in.position;
  kv.page = step.shape.page;
  const Value a = attention(b, q, kv, how.options);
  const Value flat = reshape(b, a, {in.tokens, int64_t{i.heads} * i.head_size});
  return linear(b, flat, step.param(layer, "attn_output"));
}

Value gated_part(const Step& step, uint32_t layer, Value normed, Value (*activation)(Builder&, Value)) {
  Builder& b = step.b;
  const auto project = [&](std::string_view name) { return linear(b, normed, step.param(layer, name)); };
  const Value gate = activation(b, project("ffn_gate")), up = project("ffn_up");
  return linear(b, mul(b, gate, up), step.param(layer, "ffn_down"));
}

Value pre_norm_block(const Step& step, uint32_t layer, Value x, const AttentionLayer& how) {
  const std::string name = "blk." + std::to_string(layer);
  step.b.scope(name + ".attn");
  x = add(step.b, x, attention_part(step, layer, step.norm(x, layer, "attn_norm"), how));
  step.b.scope(name + ".ffn");
  return add(step.b, x, gated_part(step, layer, step.norm(x, layer, "ffn_norm"), silu));
}

Result<Graph> decoder_graph(const ModelFile& file, const Hyper& h, const StepShape& shape, double scale,
                            const std::function<Value(const Step&, uint32_t layer, Value x)>& block) {
  Builder b;
  const StepInputs in = step_inputs(b, shape);
  b.scope("token_embd");
  const Value table = weight(b, *file.find("token_embd.weight"));
  Value x = embedding(b, table, in.ids);
  if (!b.failed() && b.type(x).dtype != DType::f32) x = cast(b, x, DType::f32);
  if (scale != 1) x = mul(b, x, scale);
  const Step step{b, file, h, in, shape, h.freq_factors ? vector(b, file, "rope_freqs.weight") : Value{}};
  for (uint32_t l = 0; l < h.info.layers; ++l) {
    x = block(step, l, x);
    if (shape.taps) b.output("blk." + std::to_string(l), x);
  }
  b.scope("output");
  const Value norm = vector(b, file, "output_norm.weight");
  const Value output = h.tied ? table : weight(b, *file.find("output.weight"));
  finish_step(b, in, x, norm, h.eps, output);
  return b.finish();
}

}  // namespace tern::llm
