// Q5_1: 32 values in 24 bytes: half d, half m, qh u32, qs[16]. Value j is code * d + m; the low four bits of code as in
// Q4_1, the fifth is bit j of qh. Layout and rounding rule: ggml's published block formats (ggml-common.h).
#include <algorithm>

#include "formats/block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 24, kElements = 32;

void decode_block(const std::byte* block, float* out) {
  uint8_t codes[kElements];
  formats::split_fives(block + 8, formats::load<uint32_t>(block + 4), codes);
  const float d = formats::load_half(block), m = formats::load_half(block + 2);
  for (uint32_t j = 0; j < kElements; ++j) out[j] = static_cast<float>(codes[j]) * d + m;  // the product is exact
}
constexpr auto decode_run = formats::decode_each<decode_block, kBytes, kElements>;
constexpr auto decode = formats::decode_one<decode_block, kBytes>;

void split(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out) {
  const std::byte* at = formats::block_at(planes, block, kBytes);
  for (int64_t b = 0; b < blocks; ++b, at += kBytes) {
    out.scales[b] = formats::load_half(at);
    out.mins[b] = formats::load_half(at + 2);
    formats::split_fives(at + 8, formats::load<uint32_t>(at + 4), out.codes + b * kElements);
  }
}

Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q5_1", values, kElements));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float least = *low, d = (*high - least) / 31.0f;
  TERN_OK(formats::check_scale("q5_1", d));
  TERN_OK(formats::check_scale("q5_1", least));
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  uint8_t codes[kElements];
  for (uint32_t j = 0; j < kElements; ++j)
    codes[j] = static_cast<uint8_t>(std::clamp(static_cast<int>((values[j] - least) * inverse + 0.5f), 0, 31));
  formats::store_half(out, d);
  formats::store_half(out + 2, least);
  formats::join_fives(codes, out + 4);
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 7}};

}  // namespace

extern const Format kFormat_q5_1;
const Format kFormat_q5_1 = {.name = "q5_1",
                             .block = {1, kElements},
                             .bytes = kBytes,
                             .cls = CodeClass::packed_min,
                             .bits = 5,
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
