// TQ2_0: 256 values in 66 bytes: qs[64], half d. Each half of 128 values has 32 bytes, whose bits 0-1, 2-3, 4-5, 6-7
// hold four runs of 32. Value: (code - 1) * d. Layout and rounding rule: ggml's published block formats
// (ggml-common.h).
#include <algorithm>

#include "formats/block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 66, kElements = 256;

void codes_of(const std::byte* packed, uint8_t* codes) {
  for (int run = 0; run < 8; ++run) formats::take_bits32(packed + 32 * (run / 4), 2 * (run % 4), 2, codes + 32 * run);
}

void decode_block(const std::byte* block, float* out) {
  uint8_t codes[kElements];
  codes_of(block, codes);
  const float d = formats::load_half(block + 64);
  for (uint32_t j = 0; j < kElements; ++j) out[j] = static_cast<float>(static_cast<int>(codes[j]) - 1) * d;
}
constexpr auto decode_run = formats::decode_each<decode_block, kBytes, kElements>;
constexpr auto decode = formats::decode_one<decode_block, kBytes>;

void split(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out) {
  const std::byte* at = formats::block_at(planes, block, kBytes);
  for (int64_t b = 0; b < blocks; ++b, at += kBytes) {
    out.scales[b] = formats::load_half(at + 64);
    codes_of(at, out.codes + b * kElements);
  }
}

Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("tq2_0", values, kElements));
  const float d = formats::largest_magnitude(values);
  TERN_OK(formats::check_scale("tq2_0", d));
  for (uint32_t i = 0; i < kElements / 4; ++i) {
    uint32_t bits = 0;
    for (uint32_t run = 0; run < 4; ++run)
      bits |= formats::ternary_code(values[i / 32 * 128 + run * 32 + i % 32], d) << (2 * run);
    out[i] = static_cast<std::byte>(bits);
  }
  formats::store_half(out + 64, d);
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 35}};

}  // namespace

extern const Format kFormat_tq2_0;
const Format kFormat_tq2_0 = {.name = "tq2_0",
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
