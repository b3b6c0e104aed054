// Q2_0: 64 values in 18 bytes: half d, then two bits a value, low bits first. Value j is (code - 1) * d: -d, 0, +d,
// +2d. Layout: ggml's published block formats (ggml-common.h).
#include <algorithm>

#include "formats/block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 18, kElements = 64;

void codes_of(const std::byte* packed, uint8_t* codes) {
  for (uint32_t j = 0; j < kElements; ++j)
    codes[j] = static_cast<uint8_t>(static_cast<uint32_t>(packed[j / 4]) >> 2 * (j % 4) & 3);
}

void decode_block(const std::byte* block, float* out) {
  uint8_t codes[kElements];
  codes_of(block + 2, codes);
  const float d = formats::load_half(block);
  for (uint32_t j = 0; j < kElements; ++j) out[j] = static_cast<float>(static_cast<int>(codes[j]) - 1) * d;
}
constexpr auto decode_run = formats::decode_each<decode_block, kBytes, kElements>;
constexpr auto decode = formats::decode_one<decode_block, kBytes>;

void split(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out) {
  const std::byte* at = formats::block_at(planes, block, kBytes);
  for (int64_t b = 0; b < blocks; ++b, at += kBytes) {
    out.scales[b] = formats::load_half(at);
    codes_of(at + 2, out.codes + b * kElements);
  }
}

Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q2_0", values, kElements));
  const float d = formats::largest_magnitude(values);
  TERN_OK(formats::check_scale("q2_0", d));
  formats::store_half(out, d);
  for (uint32_t i = 0; i < kElements / 4; ++i) {
    uint32_t bits = 0;
    for (uint32_t j = 0; j < 4; ++j) bits |= formats::ternary_code(values[4 * i + j], d) << (2 * j);
    out[2 + i] = static_cast<std::byte>(bits);
  }
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 42}};

}  // namespace

extern const Format kFormat_q2_0;
const Format kFormat_q2_0 = {.name = "q2_0",
                             .block = {1, kElements},
                             .bytes = kBytes,
                             .cls = CodeClass::packed,
                             .bits = 2,
                             .zero = 1,
                             .group = kElements,
                             .scale = DType::f16,
                             .table = {},
                             .decode = decode,
                             .decode_run = decode_run,
                             .split = split,
                             .encode = encode,
                             .ids = kIds};

}  // namespace tern
