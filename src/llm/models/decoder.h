// What decoder-only families share: the keys and tensors of a stack of blocks, and the parts of a block as graph. Keys
// are named "<architecture>.<name>", tensors as GGUF writes them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "llm/models/family.h"
#include "tern/ops/attention.h"
#include "tern/ops/linear.h"

namespace tern::llm {

struct Hyper {
  LlmInfo info;
  double eps = 0;
  RopeOptions rope;
  bool tied = false, freq_factors = false;
};

// "blk.3.attn_q.weight".
std::string block(uint32_t layer, std::string_view name);
// "llama.block_count".
std::string key_of(const Hyper& h, std::string_view name);
// A float key that must be finite and above 0; `fallback` where it is absent.
Result<double> positive_key(const ModelFile& file, const std::string& key, double fallback);

// Sizes, heads, rotary positions, epsilon and vocabulary. Mixtures of experts are refused.
Result<Hyper> read_hyper(const ModelFile& file, RopeOptions::Pairing pairing);

struct VectorTensor {
  std::string_view name;  // of a block
  int64_t size;
};
// All that decoder_graph() and the parts below read, and the family's own vectors of each block.
Status check_tensors(const ModelFile& file, const Hyper& h, const std::vector<VectorTensor>& own = {});

// One step's graph as it is being built.
struct Step {
  Builder& b;
  const ModelFile& file;
  const Hyper& h;
  const StepInputs& in;
  const StepShape& shape;
  Value factors;  // of rope, where the file has some

  Value param(uint32_t layer, std::string_view name) const;
  // x normed by a vector of the layer.
  Value norm(Value x, uint32_t layer, std::string_view name) const;
};

struct AttentionLayer {
  RopeOptions rope;
  AttentionOptions options;
  bool head_norms = false;  // attn_q_norm and attn_k_norm: every head normed before it is turned
  // Of q, k and v. What attention compares is the most sensitive to rounding: docs/decisions/0005 has the numbers.
  Precision precision = Precision::high;
};
// Projections, positions, KV state, attention and output projection of a normed x [T, hidden].
Value attention_part(const Step& step, uint32_t layer, Value normed, const AttentionLayer& how);
// down(activation(gate(normed)) * up(normed)).
Value gated_part(const Step& step, uint32_t layer, Value normed, Value (*activation)(Builder&, Value));
// The plain block, norms before its halves: x + attention(norm(x)), then x + gated(norm(x)) with SiLU.
Value pre_norm_block(const Step& step, uint32_t layer, Value x, const AttentionLayer& how);

// Embedding (times `scale`), blocks, output. A tap "blk.N" is what block(step, N, x) gives.
Result<Graph> decoder_graph(const ModelFile& file, const Hyper& h, const StepShape& shape, double scale,
                            const std::function<Value(const Step&, uint32_t layer, Value x)>& block);

}  // namespace tern::llm
