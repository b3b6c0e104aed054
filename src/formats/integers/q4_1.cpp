// Q4_1: 32 values in 20 bytes: half d, half m, qs[16]. Value j is code * d + m; codes 0..15 in the low nibbles, 16..31
// in the high. Layout and rounding rule: ggml's published block formats (ggml-common.h).
#include <algorithm>

#include "formats/block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 20, kElements = 32;

void decode_block(const std::byte* block, float* out) {
  uint8_t codes[kElements];
  formats::split_nibbles(block + 4, codes);
  const float d = formats::load_half(block), m = formats::load_half(block + 2);
  for (uint32_t j = 0; j < kElements; ++j) out[j] = static_cast<float>(codes[j]) * d + m;  // the product is exact
}
constexpr auto decode_run = formats::decode_each<decode_block, kBytes, kElements>;
constexpr auto decode = formats::decode_one<decode_block, kBytes>;

void split(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out) {
  const std::byte* at = formats::block_at(planes, block, kBytes);
  uint8_t* codes = out.codes;
  for (int64_t b = 0; b < blocks; ++b, at += kBytes, codes += kElements) {
    out.scales[b] = formats::load_half(at);
    out.mins[b] = formats::load_half(at + 2);
    formats::split_nibbles(at + 4, codes);
  }
}

Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q4_1", values, kElements));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float least = *low;
  const float d = (*high - least) / 15.0f;
  TERN_OK(formats::check_scale("q4_1", d));
  TERN_OK(formats::check_scale("q4_1", least));
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  const auto code = [&](float v) {
    const float scaled = (v - least) * inverse + 0.5f;
    return static_cast<uint8_t>(std::clamp(static_cast<int>(scaled), 0, 15));
  };
  formats::store_half(out, d);
  formats::store_half(out + 2, least);
  for (uint32_t j = 0; j < 16; ++j)
    out[4 + j] = static_cast<std::byte>(code(values[j]) | static_cast<uint8_t>(code(values[j + 16]) << 4));
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 3}};

}  // namespace

extern const Format kFormat_q4_1;
const Format kFormat_q4_1 = {.name = "q4_1",
                             .block = {1, kElements},
                             .bytes = kBytes,
                             .cls = CodeClass::packed_min,
                             .bits = 4,
                             .zero = 0,
                             .group = kElements,
                             .scale = DType::f16,
                             .table = {},
                             .decode = decode,
                             .decode_run = decode_run,
                             .split = split,
                             .encode = encode,
                             .ids = kIds};

}  // namespace tern
