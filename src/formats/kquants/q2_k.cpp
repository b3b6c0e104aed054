// Q2_K: 256 values in 84 bytes: scales[16] (low nibble the scale, high nibble the minimum of a group of 16), qs[64],
// half d, half dmin. Each half of 128 values has 32 bytes of qs, whose bits 0-1, 2-3, 4-5, 6-7 hold four runs of 32.
// Value: d * scale * code - dmin * min. Layout: ggml's published block formats (ggml-common.h).
#include "formats/kquants/super_block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 84, kGroup = 16;

void split_block(const std::byte* block, SplitPlanes out) {
  *out.outer_scales = formats::load_half(block + 80);
  *out.outer_mins = -formats::load_half(block + 82);
  for (int g = 0; g < 16; ++g) {
    const auto both = formats::load<uint8_t>(block + g);
    out.scales[g] = static_cast<float>(both & 15), out.mins[g] = static_cast<float>(both >> 4);
  }
  for (int run = 0; run < 8; ++run)
    formats::take_bits32(block + 16 + 32 * (run / 4), 2 * (run % 4), 2, out.codes + 32 * run);
}
using Blocks = formats::SuperBlocks<split_block, kBytes, kGroup, true, 0>;

Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q2_k", values, formats::kSuper));
  const formats::SuperCodes s = formats::search_with_min(values, kGroup, 3, 15);
  TERN_OK(formats::store_super("q2_k", s, true, out + 80, out + 82));
  for (int g = 0; g < 16; ++g) out[g] = static_cast<std::byte>(s.scales[g] | s.mins[g] << 4);
  for (int half = 0; half < 2; ++half) {
    const uint8_t* c = s.codes + 128 * half;
    for (int l = 0; l < 32; ++l)
      out[16 + 32 * half + l] = static_cast<std::byte>(c[l] | c[l + 32] << 2 | c[l + 64] << 4 | c[l + 96] << 6);
  }
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 10}};

}  // namespace

extern const Format kFormat_q2_k;
const Format kFormat_q2_k = {.name = "q2_k",
                             .block = {1, formats::kSuper},
                             .bytes = kBytes,
                             .cls = CodeClass::packed_min,
                             .bits = 2,
                             .zero = 0,
                             .group = kGroup,
                             .scale = DType::f16,
                             .sub_bits = 4,
                             .table = {},
                             .decode = Blocks::decode,
                             .decode_run = Blocks::decode_run,
                             .split = Blocks::split,
                             .encode = encode,
                             .ids = kIds};

}  // namespace tern
