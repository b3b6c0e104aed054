// Q6_K: 256 values in 210 bytes: ql[128], qh[64], s8 scales[16], half d. Each half of 128 values has 64 bytes of ql and
// 32 of qh: the four runs of 32 take the low nibbles of ql[0..32), those of ql[32..64), then the high ones of both, and
// bits 0-1, 2-3, 4-5, 6-7 of qh on top. Value: d * scale * (code - 32), for groups of 16. Layout: ggml's published
// block formats (ggml-common.h).
#include "formats/kquants/super_block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 210, kGroup = 16;

void split_block(const std::byte* block, SplitPlanes out) {
  *out.outer_scales = formats::load_half(block + 208);
  for (int g = 0; g < 16; ++g) out.scales[g] = static_cast<float>(formats::load<int8_t>(block + 192 + g));
  for (int half = 0; half < 2; ++half) {
    uint8_t* codes = out.codes + 128 * half;
    const std::byte *low = block + 64 * half, *high = block + 128 + 32 * half;
    for (int run = 0; run < 4; ++run) {
      formats::take_bits32(low + 32 * (run % 2), 4 * (run / 2), 4, codes + 32 * run);
      formats::or_bits32(high, 2 * run, 2, 4, codes + 32 * run);
    }
  }
}
using Blocks = formats::SuperBlocks<split_block, kBytes, kGroup, false, 32>;

Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q6_k", values, formats::kSuper));
  const formats::SuperCodes s = formats::search_symmetric(values, kGroup, 32, 127);
  TERN_OK(formats::store_super("q6_k", s, false, out + 208, nullptr));
  for (int g = 0; g < 16; ++g) out[192 + g] = static_cast<std::byte>(s.scales[g]);
  for (int half = 0; half < 2; ++half) {
    const uint8_t* c = s.codes + 128 * half;
    for (int l = 0; l < 32; ++l) {
      out[64 * half + l] = static_cast<std::byte>((c[l] & 15) | (c[l + 64] & 15) << 4);
      out[64 * half + 32 + l] = static_cast<std::byte>((c[l + 32] & 15) | (c[l + 96] & 15) << 4);
      out[128 + 32 * half + l] =
          static_cast<std::byte>(c[l] >> 4 | c[l + 32] >> 4 << 2 | c[l + 64] >> 4 << 4 | c[l + 96] >> 4 << 6);
    }
  }
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 14}};

}  // namespace

extern const Format kFormat_q6_k;
const Format kFormat_q6_k = {.name = "q6_k",
                             .block = {1, formats::kSuper},
                             .bytes = kBytes,
                             .cls = CodeClass::packed,
                             .bits = 6,
                             .zero = 32,
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
