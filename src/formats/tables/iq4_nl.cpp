// IQ4_NL: 32 values in 18 bytes: half d, qs[16]; value j < 16 is table[low nibble of qs[j]] * d, the others take the
// high nibbles. The table is denser round zero. Layout and table: ggml's published block formats (ggml-common.h).
#include <algorithm>
#include <limits>

#include "formats/block.h"

namespace tern {
namespace {

constexpr uint32_t kBytes = 18, kElements = 32;
constexpr int8_t kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void decode_block(const std::byte* block, float* out) {
  uint8_t codes[kElements];
  formats::split_nibbles(block + 2, codes);
  const float d = formats::load_half(block);
  for (uint32_t j = 0; j < kElements; ++j) out[j] = d * static_cast<float>(kTable[codes[j]]);
}
constexpr auto decode_run = formats::decode_each<decode_block, kBytes, kElements>;
constexpr auto decode = formats::decode_one<decode_block, kBytes>;

void split(const Planes& planes, int64_t block, int64_t blocks, SplitPlanes out) {
  const std::byte* at = formats::block_at(planes, block, kBytes);
  for (int64_t b = 0; b < blocks; ++b, at += kBytes) {
    out.scales[b] = formats::load_half(at);
    formats::split_nibbles(at + 2, out.codes + b * kElements);
  }
}

uint8_t nearest(float v) {
  const auto* above = std::upper_bound(std::begin(kTable), std::end(kTable), v,
                                       [](float x, int8_t t) { return x < static_cast<float>(t); });
  if (above == std::begin(kTable)) return 0;
  if (above == std::end(kTable)) return 15;
  const auto index = static_cast<uint8_t>(above - kTable);
  return v - static_cast<float>(kTable[index - 1]) < static_cast<float>(kTable[index]) - v
             ? static_cast<uint8_t>(index - 1)
             : index;
}

// Error of a scale as the file holds it.
double codes_for(std::span<const float> x, float d, uint8_t* codes) {
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    codes[i] = d != 0 ? nearest(x[i] / d) : uint8_t{8};
    const double e = static_cast<double>(d) * static_cast<double>(kTable[codes[i]]) - static_cast<double>(x[i]);
    error += e * e;
  }
  return error;
}

// The extreme value may fall on either end of the table, or a little beside it; each try is followed by the scale of
// least squares for its codes.
Status encode(std::span<const float> values, const float*, std::byte* out) {
  TERN_OK(formats::check_block("iq4_nl", values, kElements));
  float extreme = 0.0f;
  for (float v : values)
    if (std::abs(v) > std::abs(extreme)) extreme = v;
  uint8_t best_codes[kElements] = {}, codes[kElements];
  float best_d = 0;
  double best = std::numeric_limits<double>::infinity();
  for (int end : {-127, 113}) {
    for (int step = -8; step <= 8; ++step) {
      float d = extreme / (static_cast<float>(end) + static_cast<float>(2 * step));
      for (int turn = 0; turn < 2; ++turn) {
        d = f16_to_f32(f32_to_f16(d));
        if (!std::isfinite(d)) break;
        const double error = codes_for(values, d, codes);
        if (error < best) best = error, best_d = d, std::copy_n(codes, kElements, best_codes);
        double qq = 0, xq = 0;
        for (uint32_t i = 0; i < kElements; ++i) {
          const double q = kTable[codes[i]];
          qq += q * q, xq += q * static_cast<double>(values[i]);
        }
        d = static_cast<float>(xq / qq);
      }
    }
  }
  TERN_OK(formats::check_scale("iq4_nl", std::isfinite(best) ? best_d : extreme));
  formats::store_half(out, best_d);
  for (uint32_t j = 0; j < 16; ++j)
    out[2 + j] = static_cast<std::byte>(best_codes[j] | static_cast<uint8_t>(best_codes[j + 16] << 4));
  return ok();
}

constexpr FileId kIds[] = {{"gguf", 20}};

}  // namespace

extern const Format kFormat_iq4_nl;
const Format kFormat_iq4_nl = {.name = "iq4_nl",
                               .block = {1, kElements},
                               .bytes = kBytes,
                               .cls = CodeClass::lookup,
                               .bits = 4,
                               .zero = 0,
                               .group = kElements,
                               .scale = DType::f16,
                               .table = kTable,
                               .decode = decode,
                               .decode_run = decode_run,
                               .split = split,
                               .encode = encode,
                               .ids = kIds};

}  // namespace tern
