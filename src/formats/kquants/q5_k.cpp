// Q5_K: 256 values in 176 bytes: half d, half dmin, eight 6-bit scales and minima in 12 bytes, qh[32], qs[128]. As
// Q4_K, with a fifth bit: bit i of qh[l] belongs to value 32 * i + l. Layout: ggml's published block formats
// (ggml-common.h).
#include "formats/kquants/super_block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 176, kGroup = 32;

void split_block(const std::byte* block, SplitPlanes out) {
  *out.outer_scales = formats::load_half(block);
  *out.outer_mins = -formats::load_half(block + 2);
  formats::split_six_bits(block + 4, out.scales, out.mins);
  for (int i = 0; i < 4; ++i) formats::split_nibbles32(block + 48 + 32 * i, out.codes + 64 * i);
  for (int i = 0; i < 8; ++i) formats::or_bits32(block + 16, i, 1, 4, out.codes + 32 * i);
}
using Blocks = formats::SuperBlocks<split_block, kBytes, kGroup, true, 0>;

Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q5_k", values, formats::kSuper));
  const formats::SuperCodes s = formats::search_with_min(values, kGroup, 31, 63);
  TERN_OK(formats::store_super("q5_k", s, true, out, out + 2));
  formats::join_six_bits(s.scales, s.mins, out + 4);
  for (int i = 0; i < 4; ++i) formats::join_nibbles32(s.codes + 64 * i, out + 48 + 32 * i);
  for (int l = 0; l < 32; ++l) {
    int bits = 0;
    for (int i = 0; i < 8; ++i) bits |= s.codes[32 * i + l] >> 4 << i;
    out[16 + l] = static_cast<std::byte>(bits);
  }
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 13}};

}  // namespace

extern const Format kFormat_q5_k;
const Format kFormat_q5_k = {.name = "q5_k",
                             .block = {1, formats::kSuper},
                             .bytes = kBytes,
                             .cls = CodeClass::packed_min,
                             .bits = 5,
                             .zero = 0,
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
