// A ModelFile that no file stands behind.
#include <algorithm>
#include <map>
#include <mutex>

#include "base/platform/within_memory.h"
#include "llm/synthetic/blocks.h"
#include "llm/synthetic/metadata.h"
#include "tern/llm/synthetic.h"
#include "tern/llm/tokenizer.h"

namespace tern {
namespace {

constexpr float kWeightDeviation = 0.02f, kNormDeviation = 0.1f;

// The weights of one format and role: blocks of which every tensor shows a part, made when the first is asked for.
struct Pool {
  const Format* format = nullptr;
  float mean = 0, deviation = 0;
  uint64_t bytes = 0, seed = 0;  // of the largest tensor
  std::once_flag once;
  Result<std::vector<std::byte>> blocks = std::vector<std::byte>();
};

std::string block_name(uint32_t layer, const char* part) {
  return "blk." + std::to_string(layer) + "." + part + ".weight";
}

class SyntheticModel final : public ModelFile {
 public:
  SyntheticModel(const ModelShape& shape, const SyntheticOptions& options) : seed_(options.seed) {
    describe(shape, options);
    add_vocabulary(shape);
  }
  Status add_tensors(const ModelShape& s, const SyntheticOptions& options);

  const std::vector<WeightInfo>& weights() const override { return weights_; }
  const WeightInfo* find(std::string_view name) const override {
    const auto at = index_.find(name);
    return at != index_.end() ? &weights_[at->second] : nullptr;
  }
  Result<Planes> planes(const WeightInfo& weight) const override {
    const auto at = index_.find(weight.name);
    if (at == index_.end())
      return make_error(Code::invalid, "no weight " + weight.name + " comes from this model", weight.where);
    Pool& pool = *pools_[pool_of_[at->second]];
    std::call_once(pool.once, [&] {
      pool.blocks = llm::random_blocks(*pool.format, pool.bytes, pool.mean, pool.deviation, pool.seed);
    });
    if (!pool.blocks) return Error(pool.blocks.error());
    return Planes{{std::span<const std::byte>(*pool.blocks).first(weight.bytes)}};
  }
  void drop(const WeightInfo&, uint64_t, uint64_t) const override {}  // the blocks serve other tensors too

  const Metadata& metadata() const override { return metadata_; }
  std::string_view container() const override { return "memory"; }
  uint32_t container_version() const override { return 0; }
  Result<const WeightInfo*> require(std::string_view name) const override {
    if (const WeightInfo* info = find(name)) return info;
    return make_error(Code::not_found, "the tensor " + std::string(name) + " is missing", std::string(name));
  }
  std::vector<ListedTensor> list_tensors() const override {
    std::vector<ListedTensor> out;
    for (const WeightInfo& w : weights_) {
      std::vector<int64_t> shape;
      for (const Dim d : w.type.shape) shape.push_back(d.constant().value_or(0));
      const std::string_view type = w.type.format != nullptr ? w.type.format->name : dtype_name(w.type.dtype);
      out.push_back({w.name, std::string(type), std::move(shape), 0, w.bytes, "", true});
    }
    return out;
  }
  std::vector<ListedKey> list_keys(size_t max_text) const override { return metadata_.list(max_text); }

 private:
  void describe(const ModelShape& s, const SyntheticOptions& options);
  void add_vocabulary(const ModelShape& s);
  size_t pool(const Format& format, float mean, float deviation);
  Status add(const std::string& name, const std::vector<int64_t>& shape, size_t pool);

  uint64_t seed_;
  llm::MemoryMetadata metadata_;
  std::vector<WeightInfo> weights_;
  std::vector<size_t> pool_of_;
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<std::unique_ptr<Pool>> pools_;
};

void SyntheticModel::describe(const ModelShape& s, const SyntheticOptions& options) {
  const std::string prefix = std::string(s.architecture) + ".";
  metadata_.set("general.architecture", std::string(s.architecture));
  metadata_.set("general.name", std::string(s.name) + ", random " + std::string(options.matrices->name));
  const auto size = [&](const char* key, uint64_t value) { metadata_.set(prefix + key, value); };
  size("block_count", s.layers);
  size("context_length", s.context);
  size("embedding_length", s.hidden);
  size("feed_forward_length", s.ffn);
  size("attention.head_count", s.heads);
  size("attention.head_count_kv", s.kv_heads);
  size("attention.key_length", s.head_size);
  size("attention.value_length", s.head_size);
  size("rope.dimension_count", s.head_size);
  size("vocab_size", s.vocabulary);
  if (s.window != 0) size("attention.sliding_window", s.window);
  metadata_.set(prefix + "rope.freq_base", s.rope_base);
  metadata_.set(prefix + "attention.layer_norm_rms_epsilon", s.norm_epsilon);
}

// A byte-level vocabulary without merges: the 256 bytes in their printable alphabet, then names without meaning.
void SyntheticModel::add_vocabulary(const ModelShape& s) {
  std::vector<std::string> tokens;
  std::vector<int64_t> types;
  const auto utf8 = [](uint32_t code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string{static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
  };
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    tokens.push_back(utf8(itself ? byte : next++));
    types.push_back(static_cast<int64_t>(TokenType::normal));
  }
  for (uint32_t id = 256; id < s.vocabulary; ++id) {
    tokens.push_back("<|" + std::to_string(id) + "|>");
    types.push_back(static_cast<int64_t>(TokenType::unused));
  }
  metadata_.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata_.set("tokenizer.ggml.pre", std::string("gpt-2"));
  metadata_.set("tokenizer.ggml.tokens", std::move(tokens));
  metadata_.set("tokenizer.ggml.token_type", std::move(types));
  metadata_.set("tokenizer.ggml.merges", std::vector<std::string>());
}

size_t SyntheticModel::pool(const Format& format, float mean, float deviation) {
  for (size_t i = 0; i < pools_.size(); ++i) {
    if (pools_[i]->format == &format && pools_[i]->mean == mean && pools_[i]->deviation == deviation) return i;
  }
  auto made = std::make_unique<Pool>();
  made->format = &format;
  made->mean = mean;
  made->deviation = deviation;
  made->seed = seed_ + pools_.size();
  pools_.push_back(std::move(made));
  return pools_.size() - 1;
}

Status SyntheticModel::add(const std::string& name, const std::vector<int64_t>& shape, size_t pool_index) {
  Pool& pool = *pools_[pool_index];
  const Format& f = *pool.format;
  const int64_t columns = shape.back(), rows = shape.size() == 2 ? shape[0] : 1;
  if (columns % f.block[1] != 0 || rows % f.block[0] != 0) {
    return make_error(Code::unsupported, name + " is " + std::to_string(rows) + " x " + std::to_string(columns) +
                                             ", no whole number of " + std::string(f.name) + "'s blocks of " +
                                             std::to_string(f.block[0]) + " x " + std::to_string(f.block[1]));
  }
  WeightInfo info;
  info.name = name;
  info.where = name;
  if (f.cls == CodeClass::flt) {
    info.type.dtype = dtype_from_name(f.name).value_or(DType::f32);
  } else {
    info.type.format = &f;
  }
  for (const int64_t n : shape) info.type.shape.emplace_back(n);
  info.bytes = static_cast<uint64_t>(rows / f.block[0]) * static_cast<uint64_t>(columns / f.block[1]) * f.bytes;
  pool.bytes = std::max(pool.bytes, info.bytes);
  index_[name] = weights_.size();
  pool_of_.push_back(pool_index);
  weights_.push_back(std::move(info));
  return ok();
}

Status SyntheticModel::add_tensors(const ModelShape& s, const SyntheticOptions& options) {
  const Format& f32 = *plain_format(DType::f32);
  const size_t matrix = pool(*options.matrices, 0, kWeightDeviation), norm = pool(f32, 1, kNormDeviation),
               embedding =
                   pool(options.embedding != nullptr ? *options.embedding : *options.matrices, 0, kWeightDeviation),
               values = pool(options.values != nullptr ? *options.values : *options.matrices, 0, kWeightDeviation);
  const int64_t d = s.hidden, q = int64_t{s.heads} * s.head_size, kv = int64_t{s.kv_heads} * s.head_size, f = s.ffn;
  TERN_OK(add("token_embd.weight", {s.vocabulary, d}, embedding));
  for (uint32_t l = 0; l < s.layers; ++l) {
    TERN_OK(add(block_name(l, "attn_norm"), {d}, norm));
    TERN_OK(add(block_name(l, "attn_q"), {q, d}, matrix));
    TERN_OK(add(block_name(l, "attn_k"), {kv, d}, matrix));
    TERN_OK(add(block_name(l, "attn_v"), {kv, d}, values));
    if (s.qk_norm) {
      TERN_OK(add(block_name(l, "attn_q_norm"), {s.head_size}, norm));
      TERN_OK(add(block_name(l, "attn_k_norm"), {s.head_size}, norm));
    }
    TERN_OK(add(block_name(l, "attn_output"), {d, q}, matrix));
    if (s.post_norms) {
      TERN_OK(add(block_name(l, "post_attention_norm"), {d}, norm));
      TERN_OK(add(block_name(l, "post_ffw_norm"), {d}, norm));
    }
    TERN_OK(add(block_name(l, "ffn_norm"), {d}, norm));
    TERN_OK(add(block_name(l, "ffn_gate"), {f, d}, matrix));
    TERN_OK(add(block_name(l, "ffn_up"), {f, d}, matrix));
    TERN_OK(add(block_name(l, "ffn_down"), {d, f}, values));
  }
  TERN_OK(add("output_norm.weight", {d}, norm));
  if (!s.tied) TERN_OK(add("output.weight", {s.vocabulary, d}, embedding));
  if (s.rope_factors) TERN_OK(add("rope_freqs.weight", {s.head_size / 2}, norm));
  return ok();
}

}  // namespace

Result<std::unique_ptr<ModelFile>> make_synthetic_model(const ModelShape& shape, const SyntheticOptions& options) try {
  if (options.matrices == nullptr) return make_error(Code::invalid, "a synthetic model wants a format");
  auto model = std::make_unique<SyntheticModel>(shape, options);
  TERN_OK(model->add_tensors(shape, options));
  return std::unique_ptr<ModelFile>(std::move(model));
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
