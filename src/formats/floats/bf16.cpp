// bfloat16: the upper half of binary32.
#include <bit>

#include "formats/block.h"

namespace tern {
namespace {

void decode_run(const Planes& planes, int64_t block, int64_t blocks, float* out) {
  const std::byte* in = formats::block_at(planes, block, 2);
  for (int64_t i = 0; i < blocks; ++i)
    out[i] = std::bit_cast<float>(static_cast<uint32_t>(formats::load<uint16_t>(in + 2 * i)) << 16);
}
void decode(const Planes& planes, int64_t block, float* out) { decode_run(planes, block, 1, out); }

Status encode(std::span<const float> values, const float*, std::byte* out) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = f32_to_bf16(values[i]);
    std::memcpy(out + 2 * i, &bits, sizeof(bits));
  }
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 30}};

}  // namespace

extern const Format kFormat_bf16;
const Format kFormat_bf16 = {.name = "bf16",
                             .block = {1, 1},
                             .bytes = 2,
                             .cls = CodeClass::flt,
                             .bits = 16,
                             .zero = 0,
                             .group = 1,
                             .scale = DType::f32,
                             .table = {},
                             .decode = decode,
                             .decode_run = decode_run,
                             .split = nullptr,
                             .encode = encode,
                             .ids = kIds};

}  // namespace tern
