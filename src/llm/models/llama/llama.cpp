// The llama family (Touvron et al. 2023): pre-norm blocks, grouped-query attention with rotary positions on
// neighbouring pairs, SwiGLU.
#include <cmath>

#include "llm/models/decoder.h"

namespace tern::llm {
namespace {

Result<Hyper> read(const ModelFile& file) {
  TERN_TRY(Hyper h, read_hyper(file, RopeOptions::Pairing::neighbour));
  TERN_OK(check_tensors(file, h));
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
  return decoder_graph(file, h, shape, 1,
                       [&](const Step& step, uint32_t l, Value x) { return pre_norm_block(step, l, x, attention); });
}

}  // namespace

extern const ModelFamily kLlamaFamily;
const ModelFamily kLlamaFamily = {"llama", inspect, build};

}  // namespace tern::llm
