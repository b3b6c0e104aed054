#include "llm/synthetic/blocks.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <span>
#include <string>

#include "base/cpu.h"
#include "base/platform/thread.h"

namespace tern::llm {
namespace {

// Distinct blocks: enough that no kernel meets the same one twice in a cache line's neighbourhood, few enough to encode
// in milliseconds.
uint64_t distinct_blocks(const Format& format) { return std::max<uint64_t>(256, (1u << 17) / format.elements()); }

// Sum of twelve uniform numbers less six: a normal number but for its tails.
float normal(SplitMix& random) {
  float sum = -6;
  for (int i = 0; i < 3; ++i) {
    const uint64_t bits = random.next();
    for (int k = 0; k < 4; ++k) sum += static_cast<float>((bits >> (16 * k)) & 0xffff) * 0x1p-16f;
  }
  return sum;
}

// Random bits, kept where they decode to weights: of the exponents of a half about one in eight do.
Status random_bits(const Format& format, float deviation, SplitMix& random, std::byte* out) {
  std::vector<float> values(format.elements());
  Planes planes;
  planes.p[0] = {out, format.bytes};
  for (int attempt = 0; attempt < 100000; ++attempt) {
    for (uint32_t i = 0; i < format.bytes; i += 8) {
      const uint64_t bits = random.next();
      std::memcpy(out + i, &bits, std::min<size_t>(8, format.bytes - i));
    }
    format.decode(planes, 0, values.data());
    double sum = 0;
    for (const float v : values) sum += static_cast<double>(v) * v;
    const double rms = std::sqrt(sum / static_cast<double>(values.size()));
    if (rms > 0.25 * deviation && rms < 4 * deviation) return ok();
  }
  return make_error(Code::unsupported,
                    "random bits of the format " + std::string(format.name) + " do not decode to weights");
}

Result<std::vector<std::byte>> sample(const Format& format, uint64_t count, float mean, float deviation,
                                      SplitMix& random) {
  std::vector<std::byte> out(count * format.bytes);
  std::vector<float> values(format.elements());
  for (uint64_t b = 0; b < count; ++b) {
    std::byte* at = out.data() + b * format.bytes;
    if (format.encode == nullptr) {
      TERN_OK(random_bits(format, deviation, random, at));
      continue;
    }
    for (float& v : values) v = mean + deviation * normal(random);
    TERN_OK(format.encode(values, nullptr, at));
  }
  return out;
}

// Copies runs of sampled blocks from random places until `to` is full.
void fill(std::span<std::byte> to, std::span<const std::byte> samples, uint64_t block_bytes, SplitMix random) {
  const uint64_t count = samples.size() / block_bytes, run = std::clamp<uint64_t>(1024 / block_bytes, 1, count);
  for (size_t at = 0; at < to.size();) {
    const uint64_t first = random.next() % (count - run + 1);
    const size_t n = std::min<size_t>(run * block_bytes, to.size() - at);
    std::memcpy(to.data() + at, samples.data() + first * block_bytes, n);
    at += n;
  }
}

}  // namespace

Result<std::vector<std::byte>> random_blocks(const Format& format, uint64_t bytes, float mean, float deviation,
                                             uint64_t seed) {
  SplitMix random(seed);
  const uint64_t blocks = bytes / format.bytes;
  TERN_TRY(const std::vector<std::byte> samples,
           sample(format, std::min(blocks, distinct_blocks(format)), mean, deviation, random));
  std::vector<std::byte> out(blocks * format.bytes);
  // Slices have streams of their own, so that the weights do not depend on the number of cores.
  const uint64_t slices = blocks / 65536 + 1, base = random.next();
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    for (uint64_t i = next++; i < slices; i = next++) {
      const uint64_t first = blocks * i / slices * format.bytes, end = blocks * (i + 1) / slices * format.bytes;
      fill(std::span(out).subspan(first, end - first), samples, format.bytes, SplitMix(SplitMix(base + i).next()));
    }
  };
  work_on_threads(static_cast<unsigned>(std::min<uint64_t>(allowed_cores(), slices)), work);
  return out;
}

}  // namespace tern::llm
