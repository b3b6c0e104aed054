// Q4_K: 256 values in 144 bytes: half d, half dmin, eight 6-bit scales and minima in 12 bytes, qs[128]. Each 32 bytes
// of qs hold 32 values in the low nibbles and the next 32 in the high ones. Value: d * scale * code - dmin * min, for
// groups of 32. Layout: ggml's published block formats (ggml-common.h).
#include "formats/kquants/super_block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 144, kGroup = 32;

void split_block(const std::byte* block, SplitPlanes out) {
  *out.outer_scales = formats::load_half(block);
  *out.outer_mins = -formats::load_half(block + 2);
  formats::split_six_bits(block + 4, out.scales, out.mins);
  for (int i = 0; i < 4; ++i) formats::split_nibbles32(block + 16 + 32 * i, out.codes + 64 * i);
}
using Blocks = formats::SuperBlocks<split_block, kBytes, kGroup, true, 0>;

Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("q4_k", values, formats::kSuper));
  const formats::SuperCodes s = formats::search_with_min(values, kGroup, 15, 63);
  TERN_OK(formats::store_super("q4_k", s, true, out, out + 2));
  formats::join_six_bits(s.scales, s.mins, out + 4);
  for (int i = 0; i < 4; ++i) formats::join_nibbles32(s.codes + 64 * i, out + 16 + 32 * i);
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 12}};

}  // namespace

extern const Format kFormat_q4_k;
const Format kFormat_q4_k = {.name = "q4_k",
                             .block = {1, formats::kSuper},
                             .bytes = kBytes,
                             .cls = CodeClass::packed_min,
                             .bits = 4,
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
