// IEEE 754 binary16.
#include <bit>

#include "formats/block.h"

namespace tern {
namespace {

// Without branches, so that whole tensors convert at vector speed; equal to f16_to_f32 for all 65,536 codes (tested).
// No subnormal f32 takes part: threads may run with subnormals flushed to zero.
float widen(uint16_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t rebias = magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u;  // infinity and NaN move to the top exponent
  const uint32_t normal = (magnitude << 13) + rebias;
  const uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t bits = magnitude < 0x0400u ? subnormal : normal;
  return std::bit_cast<float>(bits | (static_cast<uint32_t>(half & 0x8000u) << 16));
}

void decode_run(const Planes& planes, int64_t block, int64_t blocks, float* out) {
  const std::byte* in = formats::block_at(planes, block, 2);
  for (int64_t i = 0; i < blocks; ++i) out[i] = widen(formats::load<uint16_t>(in + 2 * i));
}
void decode(const Planes& planes, int64_t block, float* out) { decode_run(planes, block, 1, out); }

Status encode(std::span<const float> values, const float*, std::byte* out) {
  for (size_t i = 0; i < values.size(); ++i) formats::store_half(out + 2 * i, values[i]);
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 1}};

}  // namespace

extern const Format kFormat_f16;
const Format kFormat_f16 = {.name = "f16", .block = {1, 1}, .bytes = 2, .cls = CodeClass::flt, .bits = 16, .zero = 0, .group = 1,
                            .scale = DType::f32, .has_outer = false, .table = {}, .decode = decode, .split = nullptr,
                            .decode_run = decode_run, .split_run = nullptr, .encode = encode, .ids = kIds};

}  // namespace tern
