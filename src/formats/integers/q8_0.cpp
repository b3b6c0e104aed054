// Q8_0: 32 values in 34 bytes: half d, s8 q[32]. Value j is q[j] * d. Codes are unsigned in tern: code = q + 128, zero
// 128. Layout and rounding rule: ggml's published block formats (ggml-common.h).
#include <algorithm>

#include "formats/block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 34, kElements = 32;

void decode_block(const std::byte* block, float* out) {
  int8_t q[kElements];
  std::memcpy(q, block + 2, sizeof(q));
  const float d = formats::load_half(block);
  for (uint32_t j = 0; j < kElements; ++j) out[j] = static_cast<float>(q[j]) * d;
}
constexpr auto decode_run = formats::decode_each<decode_block, kBytes, kElements>;
constexpr auto decode = formats::decode_one<decode_block, kBytes>;

void split(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out) {
  const std::byte* at = formats::block_at(planes, block, kBytes);
  uint8_t* codes = out.codes;
  for (int64_t b = 0; b < blocks; ++b, at += kBytes, codes += kElements) {
    out.scales[b] = formats::load_half(at);
    uint64_t words[4];
    std::memcpy(words, at + 2, sizeof(words));
    for (uint64_t& word : words) word ^= 0x8080808080808080ULL;  // q + 128 in every byte
    std::memcpy(codes, words, sizeof(words));
  }
}

Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q8_0", values, kElements));
  float largest = 0.0f;
  for (float v : values) largest = std::max(largest, std::abs(v));
  const float d = largest / 127.0f;
  TERN_OK(formats::check_scale("q8_0", d));
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  formats::store_half(out, d);
  for (uint32_t j = 0; j < kElements; ++j)
    out[2 + j] =
        static_cast<std::byte>(static_cast<int8_t>(std::clamp(std::round(values[j] * inverse), -128.0f, 127.0f)));
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 8}};

}  // namespace

extern const Format kFormat_q8_0;
const Format kFormat_q8_0 = {.name = "q8_0",
                             .block = {1, kElements},
                             .bytes = kBytes,
                             .cls = CodeClass::packed,
                             .bits = 8,
                             .zero = 128,
                             .group = kElements,
                             .scale = DType::f16,
                             .table = {},
                             .decode = decode,
                             .decode_run = decode_run,
                             .split = split,
                             .encode = encode,
                             .ids = kIds};

}  // namespace tern
