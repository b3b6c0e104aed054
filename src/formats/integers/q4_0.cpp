// Q4_0: 32 values in 18 bytes: half d, qs[16]. Value j is (code - 8) * d; codes 0..15 in the low nibbles, 16..31 in the
// high ones. Layout and rounding rule: ggml's published block formats (ggml-common.h).
#include <algorithm>

#include "formats/block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 18, kElements = 32;

void decode_block(const std::byte* block, float* out) {
  uint8_t codes[kElements];
  formats::split_nibbles(block + 2, codes);
  const float d = formats::load_half(block);
  for (uint32_t j = 0; j < kElements; ++j) out[j] = static_cast<float>(static_cast<int>(codes[j]) - 8) * d;
}
constexpr auto decode_run = formats::decode_each<decode_block, kBytes, kElements>;
constexpr auto decode = formats::decode_one<decode_block, kBytes>;

void split(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out) {
  const std::byte* at = formats::block_at(planes, block, kBytes);
  uint8_t* codes = out.codes;
  for (int64_t b = 0; b < blocks; ++b, at += kBytes, codes += kElements) {
    out.scales[b] = formats::load_half(at);
    formats::split_nibbles(at + 2, codes);
  }
}

// The value of largest magnitude, sign kept, becomes -8: the range [-8, 7] is then used on the side that needs it.
Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q4_0", values, kElements));
  float extreme = 0.0f;
  for (float v : values)
    if (std::abs(v) > std::abs(extreme)) extreme = v;
  const float d = extreme / -8.0f;
  TERN_OK(formats::check_scale("q4_0", d));
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  const auto code = [&](float v) {
    const float scaled = v * inverse + 8.5f;
    return static_cast<uint8_t>(std::clamp(static_cast<int>(scaled), 0, 15));
  };
  formats::store_half(out, d);
  for (uint32_t j = 0; j < 16; ++j)
    out[2 + j] = static_cast<std::byte>(code(values[j]) | static_cast<uint8_t>(code(values[j + 16]) << 4));
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 2}};

}  // namespace

extern const Format kFormat_q4_0;
const Format kFormat_q4_0 = {.name = "q4_0",
                             .block = {1, kElements},
                             .bytes = kBytes,
                             .cls = CodeClass::packed,
                             .bits = 4,
                             .zero = 8,
                             .group = kElements,
                             .scale = DType::f16,
                             .table = {},
                             .decode = decode,
                             .decode_run = decode_run,
                             .split = split,
                             .encode = encode,
                             .ids = kIds};

}  // namespace tern
