// Sizes as the models' published config.json files say them.
#include "tern/llm/synthetic.h"

namespace tern {
namespace {

constexpr ModelShape kShapes[] = {
    // name, architecture, layers, hidden, heads, kv heads, head size, ffn, vocabulary, context, rope base, epsilon,
    // tied,
    // q and k norms, rope factors; post norms, window
    {"smollm2-135m", "llama", 30, 576, 9, 3, 64, 1536, 49152, 8192, 1e5, 1e-5, true, false, false},
    {"smollm2-360m", "llama", 32, 960, 15, 5, 64, 2560, 49152, 8192, 1e5, 1e-5, true, false, false},
    {"smollm2-1.7b", "llama", 24, 2048, 32, 32, 64, 8192, 49152, 8192, 1.3e5, 1e-5, true, false, false},
    {"tinyllama-1.1b", "llama", 22, 2048, 32, 4, 64, 5632, 32000, 2048, 1e4, 1e-5, false, false, false},
    {"llama-2-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32000, 4096, 1e4, 1e-5, false, false, false},
    {"llama-3-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192, 5e5, 1e-5, false, false, false},
    {"llama-3-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 8192, 5e5, 1e-5, false, false, false},
    {"llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, 5e5, 1e-5, true, false, true},
    {"llama-3.2-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072, 5e5, 1e-5, true, false, true},
    {"mistral-7b", "llama", 32, 4096, 32, 8, 128, 14336, 32768, 32768, 1e6, 1e-5, false, false, false},
    {"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1e6, 1e-6, true, true, false},
    {"qwen3-1.7b", "qwen3", 28, 2048, 16, 8, 128, 6144, 151936, 40960, 1e6, 1e-6, true, true, false},
    {"qwen3-4b", "qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960, 1e6, 1e-6, true, true, false},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1e6, 1e-6, false, true, false},
    {"gemma-3-270m", "gemma3", 18, 640, 4, 1, 256, 2048, 262144, 32768, 1e6, 1e-6, true, true, false, true, 512},
    {"gemma-3-1b", "gemma3", 26, 1152, 4, 1, 256, 6912, 262144, 32768, 1e6, 1e-6, true, true, false, true, 512},
    // Qwen3-8B's sizes, trained with one bit a weight.
    {"bonsai-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 65536, 1e6, 1e-6, false, true, false},
};

}  // namespace

uint64_t ModelShape::parameters() const {
  const uint64_t d = hidden, q = uint64_t{heads} * head_size, kv = uint64_t{kv_heads} * head_size, f = ffn;
  const uint64_t layer =
      2 * d * q + 2 * d * kv + 3 * d * f + (post_norms ? 4 : 2) * d + (qk_norm ? 2 * uint64_t{head_size} : 0);
  return layers * layer + (tied ? 1 : 2) * vocabulary * d + d + (rope_factors ? head_size / 2 : 0);
}

std::span<const ModelShape> model_shapes() { return kShapes; }

Result<const ModelShape*> model_shape(std::string_view name) {
  std::string known;
  for (const ModelShape& shape : kShapes) {
    if (shape.name == name) return &shape;
    known += (known.empty() ? "" : ", ") + std::string(shape.name);
  }
  return make_error(Code::not_found, "there is no shape '" + std::string(name) + "'; known: " + known);
}

}  // namespace tern
