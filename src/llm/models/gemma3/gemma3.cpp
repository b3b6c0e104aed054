// The text side of Gemma 3 (Gemma Team 2025): of every six layers five see a window of the text and turn positions by a
// base of their own; query and key heads normed before they are turned; norms before and behind each half of a block; a
// gated unit with GELU; the embedding scaled by the root of its width. The file's norm weights are those to multiply
// by.
#include <cmath>

#include "llm/models/decoder.h"
#include "tern/ops/elementwise.h"

namespace tern::llm {
namespace {

// What the family fixes: its files need not say it (transformers, configuration_gemma3.py).
constexpr uint32_t kPeriod = 6;
constexpr double kWindowBase = 10000;

struct Gemma {
  Hyper h;
  uint32_t period = kPeriod;  // layer i sees all of the text where (i + 1) % period = 0
  AttentionLayer whole, windowed;
};

// Keys with a usual value elsewhere that this family does not have: without them the text would be wrong, silently.
Status require_keys(const ModelFile& file, const Hyper& h) {
  TERN_OK(file.metadata().u64(key_of(h, "attention.key_length")));
  TERN_OK(file.metadata().f64(key_of(h, "rope.freq_base")));
  for (const std::string_view name : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    const std::string key = key_of(h, name);
    TERN_TRY(const double cap, f64_or(file.metadata(), key, 0));
    if (cap != 0)
      return make_error(Code::unsupported, key + " = " + std::to_string(cap) + ": this family caps no logits", key);
  }
  return ok();
}

Result<double> score_scale(const ModelFile& file, const Hyper& h) {
  // 27B scales by the share of the width that a head has; its files tell by their label alone.
  TERN_TRY(const std::string label, string_or(file.metadata(), "general.size_label", ""));
  const double width = label == "27B" ? static_cast<double>(h.info.hidden) / h.info.heads : h.info.head_size;
  return positive_key(file, key_of(h, "attention.scale"), 1 / std::sqrt(width));
}

Result<Gemma> read(const ModelFile& file) {
  Gemma g;
  TERN_TRY(g.h, read_hyper(file, RopeOptions::Pairing::halves));
  const LlmInfo& i = g.h.info;
  TERN_OK(require_keys(file, g.h));
  TERN_TRY(g.whole.options.scale, score_scale(file, g.h));
  g.whole.rope = g.h.rope;
  g.whole.head_norms = true;
  g.windowed = g.whole;
  TERN_TRY(g.windowed.options.window, size_key(file, key_of(g.h, "attention.sliding_window"), 1, 1u << 30));
  // A stretched context stretches the layers that see it.
  g.windowed.rope = {};
  g.windowed.rope.pairing = g.h.rope.pairing;
  g.windowed.rope.rotary = g.h.rope.rotary;
  TERN_TRY(g.windowed.rope.base, positive_key(file, key_of(g.h, "rope.freq_base_swa"), kWindowBase));
  const std::string pattern = key_of(g.h, "attention.sliding_window_pattern");
  if (file.metadata().has(pattern)) {
    TERN_TRY(g.period, size_key(file, pattern, 1, 1u << 20));
  }
  TERN_OK(check_tensors(file, g.h,
                        {{"attn_q_norm", i.head_size},
                         {"attn_k_norm", i.head_size},
                         {"post_attention_norm", i.hidden},
                         {"post_ffw_norm", i.hidden}}));
  return g;
}

Result<LlmInfo> inspect(const ModelFile& file) {
  TERN_TRY(Gemma g, read(file));
  return std::move(g.h.info);
}

Result<Graph> build(const ModelFile& file, const StepShape& shape) {
  TERN_TRY(const Gemma g, read(file));
  const double scale = std::sqrt(static_cast<double>(g.h.info.hidden));
  return decoder_graph(file, g.h, shape, scale, [&](const Step& step, uint32_t l, Value x) {
    Builder& b = step.b;
    const std::string name = "blk." + std::to_string(l);
    b.scope(name + ".attn");
    const Value a =
        attention_part(step, l, step.norm(x, l, "attn_norm"), (l + 1) % g.period == 0 ? g.whole : g.windowed);
    x = add(b, x, step.norm(a, l, "post_attention_norm"));
    b.scope(name + ".ffn");
    const Value f = gated_part(step, l, step.norm(x, l, "ffn_norm"), gelu_tanh);
    return add(b, x, step.norm(f, l, "post_ffw_norm"));
  });
}

}  // namespace

extern const ModelFamily kGemma3Family;
const ModelFamily kGemma3Family = {"gemma3", inspect, build};

}  // namespace tern::llm
