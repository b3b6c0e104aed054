// Q3_K: 256 values in 110 bytes: hmask[32], qs[64], sixteen 6-bit scales in 12 bytes, half d. Each half of 128 values
// has 32 bytes of qs, whose bits 0-1, 2-3, 4-5, 6-7 hold four runs of 32; bit i of hmask[l] is the third bit of value
// 32 * i + l. Value: d * (scale - 32) * (code - 4), for groups of 16. Layout: ggml's published block formats
// (ggml-common.h).
#include "formats/kquants/super_block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 110, kGroup = 16;

void split_block(const std::byte* block, SplitPlanes out) {
  *out.outer_scales = formats::load_half(block + 108);
  const auto* s = reinterpret_cast<const uint8_t*>(block + 96);
  for (int g = 0; g < 16; ++g) {
    const int low = g < 8 ? s[g] & 15 : s[g - 8] >> 4, high = s[8 + g % 4] >> (2 * (g / 4)) & 3;
    out.scales[g] = static_cast<float>((low | high << 4) - 32);
  }
  for (int run = 0; run < 8; ++run) {
    formats::take_bits32(block + 32 + 32 * (run / 4), 2 * (run % 4), 2, out.codes + 32 * run);
    formats::or_bits32(block, run, 1, 2, out.codes + 32 * run);
  }
}
using Blocks = formats::SuperBlocks<split_block, kBytes, kGroup, false, 4>;

Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q3_k", values, formats::kSuper));
  const formats::SuperCodes s = formats::search_symmetric(values, kGroup, 4, 31);
  TERN_OK(formats::store_super("q3_k", s, false, out + 108, nullptr));
  uint8_t packed[12] = {};
  for (int g = 0; g < 16; ++g) {
    const int scale = s.scales[g] + 32;
    packed[g % 8] |= static_cast<uint8_t>((scale & 15) << (g < 8 ? 0 : 4));
    packed[8 + g % 4] |= static_cast<uint8_t>(scale >> 4 << (2 * (g / 4)));
  }
  std::memcpy(out + 96, packed, sizeof(packed));
  for (int l = 0; l < 32; ++l) {
    int mask = 0, low = 0, high = 0;
    for (int run = 0; run < 8; ++run) {
      const int code = s.codes[32 * run + l];
      mask |= code >> 2 << run;
      (run < 4 ? low : high) |= (code & 3) << (2 * (run % 4));
    }
    out[l] = static_cast<std::byte>(mask);
    out[32 + l] = static_cast<std::byte>(low);
    out[64 + l] = static_cast<std::byte>(high);
  }
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 11}};

}  // namespace

extern const Format kFormat_q3_k;
const Format kFormat_q3_k = {.name = "q3_k",
                             .block = {1, formats::kSuper},
                             .bytes = kBytes,
                             .cls = CodeClass::packed,
                             .bits = 3,
                             .zero = 4,
                             .group = kGroup,
                             .scale = DType::f16,
                             .sub_bits = 8,
                             .table = {},
                             .decode = Blocks::decode,
                             .decode_run = Blocks::decode_run,
                             .split = Blocks::split,
                             .encode = encode,
                             .ids = kIds};

}  // namespace tern
