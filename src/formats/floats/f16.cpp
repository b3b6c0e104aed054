// IEEE 754 binary16.
#include "formats/block.h"

namespace tern {
namespace {

void decode_run(const Planes& planes, int64_t block, int64_t blocks, float* out) {
  const std::byte* in = formats::block_at(planes, block, 2);
  for (int64_t i = 0; i < blocks; ++i) out[i] = formats::widen_half(formats::load<uint16_t>(in + 2 * i));
}
void decode(const Planes& planes, int64_t block, float* out) { decode_run(planes, block, 1, out); }

Status encode(std::span<const float> values, const float*, std::byte* out) {
  for (size_t i = 0; i < values.size(); ++i) formats::store_half(out + 2 * i, values[i]);
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 1}};

}  // namespace

extern const Format kFormat_f16;
const Format kFormat_f16 = {.name = "f16",
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
