// Q1_0: 128 values in 18 bytes: half d, then a bit a value, low bits first: 1 means +d, 0 means -d. Layout: ggml's
// published block formats (ggml-common.h).
#include <algorithm>

#include "formats/block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 18, kElements = 128;

void decode_block(const std::byte* block, float* out) {
  const float d = formats::load_half(block);
  for (uint32_t j = 0; j < kElements; ++j)
    out[j] = (static_cast<uint32_t>(block[2 + j / 8]) >> j % 8 & 1) != 0 ? d : -d;
}
constexpr auto decode_run = formats::decode_each<decode_block, kBytes, kElements>;
constexpr auto decode = formats::decode_one<decode_block, kBytes>;

void split(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out) {
  const std::byte* at = formats::block_at(planes, block, kBytes);
  for (int64_t b = 0; b < blocks; ++b, at += kBytes) {
    out.scales[b] = formats::load_half(at);
    for (uint32_t i = 0; i < kElements / 8; ++i) {
      const uint64_t codes = formats::spread_bits(static_cast<uint32_t>(at[2 + i]));
      std::memcpy(out.codes + b * kElements + 8 * i, &codes, 8);
    }
  }
}

// The mean magnitude is the scale of least squares for signs; where all weights are +-d or 0 already, it is d.
Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q1_0", values, kElements));
  float sum = 0, largest = 0;
  bool signs = true;
  for (float v : values) sum += std::abs(v), largest = std::max(largest, std::abs(v));
  for (float v : values) signs = signs && std::abs(v) == largest;
  const float d = signs ? largest : sum / static_cast<float>(kElements);
  TERN_OK(formats::check_scale("q1_0", d));
  formats::store_half(out, d);
  for (uint32_t i = 0; i < kElements / 8; ++i) {
    uint32_t bits = 0;
    for (uint32_t j = 0; j < 8; ++j) bits |= static_cast<uint32_t>(values[8 * i + j] >= 0) << j;
    out[2 + i] = static_cast<std::byte>(bits);
  }
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 41}};

}  // namespace

extern const Format kFormat_q1_0;
const Format kFormat_q1_0 = {.name = "q1_0",
                             .block = {1, kElements},
                             .bytes = kBytes,
                             .cls = CodeClass::packed,
                             .bits = 1,
                             .zero = 1,
                             .step = 2,
                             .group = kElements,
                             .scale = DType::f16,
                             .table = {},
                             .decode = decode,
                             .decode_run = decode_run,
                             .split = split,
                             .encode = encode,
                             .ids = kIds};

}  // namespace tern
