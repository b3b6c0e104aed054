// Plain IEEE 754 binary32.
#include "formats/block.h"

namespace tern {
namespace {

void decode_run(const Planes& planes, int64_t block, int64_t blocks, float* out) {
  std::memcpy(out, formats::block_at(planes, block, 4), static_cast<size_t>(blocks) * 4);
}
void decode(const Planes& planes, int64_t block, float* out) { decode_run(planes, block, 1, out); }

Status encode(std::span<const float> values, const float*, std::byte* out) {
  std::memcpy(out, values.data(), values.size_bytes());
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 0}};

}  // namespace

extern const Format kFormat_f32;
const Format kFormat_f32 = {.name = "f32",
                            .block = {1, 1},
                            .bytes = 4,
                            .cls = CodeClass::flt,
                            .bits = 32,
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
