// The Qwen3 family (Yang et al. 2025), dense: llama's block with every query and key head normed before it is turned,
// rotary positions on halves.
#include <cmath>

#include "llm/models/decoder.h"

namespace tern::llm {
namespace {

Result<Hyper> read(const ModelFile& file) {
  TERN_TRY(Hyper h, read_hyper(file, RopeOptions::Pairing::halves));
  TERN_OK(check_tensors(file, h, {{"attn_q_norm", h.info.head_size}, {"attn_k_norm", h.info.head_size}}));
  return h;
}

Result<LlmInfo> inspect(const ModelFile& file) {
  TERN_TRY(Hyper h, read(file));
  return std::move(h.info);
}

Result<Graph> build(const ModelFile& file, const StepShape& shape) {
  TERN_TRY(const Hyper h, read(file));
  AttentionLayer attention;
  attention.rope = h.rope;
  attention.options.scale = 1.0 / std::sqrt(static_cast<double>(h.info.head_size));
  attention.head_norms = true;
  return decoder_graph(file, h, shape, 1,
                       [&](const Step& step, uint32_t l, Value x) { return pre_norm_block(step, l, x, attention); });
}

}  // namespace

extern const ModelFamily kQwen3Family;
const ModelFamily kQwen3Family = {"qwen3", inspect, build};

}  // namespace tern::llm
