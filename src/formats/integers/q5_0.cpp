// Q5_0: 32 values in 22 bytes: half d, qh u32, qs[16]. Value j is (code - 16) * d; the low four bits of code as in
// Q4_0, the fifth is bit j of qh. Layout and rounding rule: ggml's published block formats (ggml-common.h).
#include <algorithm>

#include "formats/block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 22, kElements = 32;

void decode_block(const std::byte* block, float* out) {
  uint8_t codes[kElements];
  formats::split_fives(block + 6, formats::load<uint32_t>(block + 2), codes);
  const float d = formats::load_half(block);
  for (uint32_t j = 0; j < kElements; ++j) out[j] = static_cast<float>(static_cast<int>(codes[j]) - 16) * d;
}
constexpr auto decode_run = formats::decode_each<decode_block, kBytes, kElements>;
constexpr auto decode = formats::decode_one<decode_block, kBytes>;

void split(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out) {
  const std::byte* at = formats::block_at(planes, block, kBytes);
  for (int64_t b = 0; b < blocks; ++b, at += kBytes) {
    out.scales[b] = formats::load_half(at);
    formats::split_fives(at + 6, formats::load<uint32_t>(at + 2), out.codes + b * kElements);
  }
}

// The value of largest magnitude, sign kept, becomes -16.
Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q5_0", values, kElements));
  float extreme = 0.0f;
  for (float v : values)
    if (std::abs(v) > std::abs(extreme)) extreme = v;
  const float d = extreme / -16.0f;
  TERN_OK(formats::check_scale("q5_0", d));
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  uint8_t codes[kElements];
  for (uint32_t j = 0; j < kElements; ++j)
    codes[j] = static_cast<uint8_t>(std::clamp(static_cast<int>(values[j] * inverse + 16.5f), 0, 31));
  formats::store_half(out, d);
  formats::join_fives(codes, out + 2);
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 6}};

}  // namespace

extern const Format kFormat_q5_0;
const Format kFormat_q5_0 = {.name = "q5_0",
                             .block = {1, kElements},
                             .bytes = kBytes,
                             .cls = CodeClass::packed,
                             .bits = 5,
                             .zero = 16,
                             .group = kElements,
                             .scale = DType::f16,
                             .table = {},
                             .decode = decode,
                             .decode_run = decode_run,
                             .split = split,
                             .encode = encode,
                             .ids = kIds};

}  // namespace tern
