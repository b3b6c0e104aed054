// Models of well-known shapes with random weights, made in memory: what a model's speed and memory are, without a
// download.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tern/format.h"
#include "tern/import/model_file.h"
#include "tern/result.h"

namespace tern {

// The sizes of a published model, by its configuration file.
struct ModelShape {
  std::string_view name;          // "qwen3-8b"
  std::string_view architecture;  // general.architecture of its files: the family whose graph it wants
  uint32_t layers, hidden, heads, kv_heads, head_size, ffn, vocabulary, context;
  double rope_base, norm_epsilon;
  bool tied;                // the embedding table is the output matrix too
  bool qk_norm;             // heads of q and k are normalised
  bool rope_factors;        // frequencies are scaled one by one
  bool post_norms = false;  // behind attention and behind the gated unit
  uint32_t window = 0;      // tokens that most layers see; 0: all
  uint64_t parameters() const;
};
std::span<const ModelShape> model_shapes();
// Code::not_found names all.
Result<const ModelShape*> model_shape(std::string_view name);

struct SyntheticOptions {
  const Format* matrices = nullptr;   // of all matrices but the embedding table and the output matrix
  const Format* embedding = nullptr;  // of these two; null: as the others
  uint64_t seed = 0;                  // the same seed gives the same weights
  const Format* values = nullptr;     // of attn_v and ffn_down, which mixed files keep finer; null: as the others
};
// Weights decode to about N(0, 0.02), norms to about 1, so that logits are finite. Tensors of one format share their
// random blocks: the source takes as much memory as its largest tensor, from the first planes() on. The architecture
// need not be one that this build can run; what runs it says so. Code::unsupported where a row is no whole number of
// blocks.
Result<std::unique_ptr<ModelFile>> make_synthetic_model(const ModelShape& shape, const SyntheticOptions& options);

}  // namespace tern
