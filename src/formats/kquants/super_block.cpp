// The search of the K formats' encoders. For every group the range is stretched and shrunk a little, each time with the
// scale (and minimum) of least squares for the codes that come out; the best are rounded to the block's whole numbers,
// and their neighbours tried once more with the values that a reader will see.
#include "formats/kquants/super_block.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace tern::formats {
namespace {

float as_half(float v) { return f16_to_f32(f32_to_f16(v)); }
float rounded(float v) { return std::nearbyint(v); }  // half to even

struct Fit {
  float scale = 0, min = 0;  // value ~ scale * code - min
  double error = std::numeric_limits<double>::infinity();
};

double error_of(std::span<const float> x, const std::vector<float>& q, float scale, float min) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double e =
        static_cast<double>(scale) * static_cast<double>(q[i]) - static_cast<double>(min) - static_cast<double>(x[i]);
    sum += e * e;
  }
  return sum;
}

// Least squares for given codes, the minimum not below 0.
Fit least_squares(std::span<const float> x, const std::vector<float>& q) {
  double n = static_cast<double>(x.size()), sq = 0, sqq = 0, sx = 0, sxq = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double c = static_cast<double>(q[i]), v = static_cast<double>(x[i]);
    sq += c, sqq += c * c, sx += v, sxq += v * c;
  }
  const double det = n * sqq - sq * sq;
  Fit f;
  double scale = det > 0 ? (n * sxq - sq * sx) / det : 0, min = det > 0 ? (sq * sxq - sqq * sx) / det : -sx / n;
  if (min < 0) min = 0, scale = sqq > 0 ? sxq / sqq : 0;
  f.scale = static_cast<float>(std::max(scale, 0.0)), f.min = static_cast<float>(min);
  f.error = error_of(x, q, f.scale, f.min);
  return f;
}

void quantise(std::span<const float> x, float inverse, float min, int levels, std::vector<float>& q) {
  for (size_t i = 0; i < x.size(); ++i)
    q[i] = std::clamp(rounded((x[i] + min) * inverse), 0.0f, static_cast<float>(levels));
}

Fit fit_with_min(std::span<const float> x, int levels) {
  const auto [low_at, high_at] = std::minmax_element(x.begin(), x.end());
  const float low = std::min(*low_at, 0.0f), high = *high_at;
  Fit best{0, -low, error_of(x, std::vector<float>(x.size(), 0.0f), 0, -low)};
  if (!(high > low)) return best;
  std::vector<float> q(x.size());
  for (int step = -10; step <= 10; ++step) {
    float inverse = (static_cast<float>(levels) + 0.1f * static_cast<float>(step)) / (high - low), min = -low;
    for (int turn = 0; turn < 3 && std::isfinite(inverse); ++turn) {
      quantise(x, inverse, min, levels, q);
      const Fit f = least_squares(x, q);
      if (f.error < best.error) best = f;
      if (!(f.scale > 0)) break;
      inverse = 1 / f.scale, min = f.min;
    }
  }
  return best;
}

Fit fit_symmetric(std::span<const float> x, int zero) {
  float extreme = 0;
  for (float v : x)
    if (std::abs(v) > std::abs(extreme)) extreme = v;
  Fit best{0, 0, error_of(x, std::vector<float>(x.size(), 0.0f), 0, 0)};
  if (extreme == 0) return best;
  std::vector<float> q(x.size());
  const auto most = static_cast<float>(zero);
  for (int step = -12; step <= 12; ++step) {
    float inverse = -(most + 0.1f * static_cast<float>(step)) / extreme;
    for (int turn = 0; turn < 2 && std::isfinite(inverse); ++turn) {
      double qq = 0, xq = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        q[i] = std::clamp(rounded(x[i] * inverse), -most, most - 1);
        qq += static_cast<double>(q[i]) * static_cast<double>(q[i]);
        xq += static_cast<double>(x[i]) * static_cast<double>(q[i]);
      }
      if (!(qq > 0)) break;
      const auto scale = static_cast<float>(xq / qq);
      const double error = error_of(x, q, scale, 0);
      if (error < best.error) best = {scale, 0, error};
      if (scale == 0) break;
      inverse = 1 / scale;
    }
  }
  return best;
}

// Codes of a group for exactly these numbers.
double requantise(std::span<const float> x, float scale, float min, int low, int high, std::vector<float>& q) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  for (size_t i = 0; i < x.size(); ++i)
    q[i] = std::isfinite(inverse)
               ? std::clamp(rounded((x[i] + min) * inverse), static_cast<float>(low), static_cast<float>(high))
               : 0.0f;
  return error_of(x, q, scale, min);
}

}  // namespace

SuperCodes search_with_min(std::span<const float> values, int group, int levels, int most) {
  const auto groups = values.size() / static_cast<size_t>(group);
  std::vector<Fit> fits;
  SuperCodes out;
  float top_scale = 0, top_min = 0;
  for (size_t g = 0; g < groups; ++g) {
    fits.push_back(fit_with_min(values.subspan(g * static_cast<size_t>(group), static_cast<size_t>(group)), levels));
    top_scale = std::max(top_scale, fits.back().scale), top_min = std::max(top_min, fits.back().min);
  }
  out.d = as_half(top_scale / static_cast<float>(most)), out.dmin = as_half(top_min / static_cast<float>(most));
  auto whole = [&](float v, float unit) {
    return unit > 0 ? static_cast<int>(std::clamp(rounded(v / unit), 0.0f, static_cast<float>(most))) : 0;
  };
  std::vector<float> q(static_cast<size_t>(group));
  for (size_t g = 0; g < groups; ++g) {
    const auto x = values.subspan(g * q.size(), q.size());
    const int scale = whole(fits[g].scale, out.d), min = whole(fits[g].min, out.dmin);
    double best = std::numeric_limits<double>::infinity();
    for (int s = std::max(0, scale - 2); s <= std::min(most, scale + 2); ++s) {
      for (int m = std::max(0, min - 2); m <= std::min(most, min + 2); ++m) {
        const double error =
            requantise(x, out.d * static_cast<float>(s), out.dmin * static_cast<float>(m), 0, levels, q);
        if (!(error < best)) continue;
        best = error, out.scales[g] = s, out.mins[g] = m;
        std::transform(q.begin(), q.end(), out.codes + g * q.size(), [](float c) { return static_cast<uint8_t>(c); });
      }
    }
  }
  return out;
}

SuperCodes search_symmetric(std::span<const float> values, int group, int zero, int most) {
  const auto groups = values.size() / static_cast<size_t>(group);
  std::vector<Fit> fits;
  SuperCodes out;
  float top = 0;
  for (size_t g = 0; g < groups; ++g) {
    fits.push_back(fit_symmetric(values.subspan(g * static_cast<size_t>(group), static_cast<size_t>(group)), zero));
    if (std::abs(fits.back().scale) > std::abs(top)) top = fits.back().scale;
  }
  out.d = as_half(top / static_cast<float>(-most - 1));
  std::vector<float> q(static_cast<size_t>(group));
  for (size_t g = 0; g < groups; ++g) {
    const auto x = values.subspan(g * q.size(), q.size());
    const int scale = out.d != 0 ? static_cast<int>(std::clamp(rounded(fits[g].scale / out.d),
                                                               static_cast<float>(-most - 1), static_cast<float>(most)))
                                 : 0;
    double best = std::numeric_limits<double>::infinity();
    for (int s = std::max(-most - 1, scale - 2); s <= std::min(most, scale + 2); ++s) {
      const double error = requantise(x, out.d * static_cast<float>(s), 0, -zero, zero - 1, q);
      if (!(error < best)) continue;
      best = error, out.scales[g] = s;
      std::transform(q.begin(), q.end(), out.codes + g * q.size(),
                     [&](float c) { return static_cast<uint8_t>(static_cast<int>(c) + zero); });
    }
  }
  return out;
}

void split_six_bits(const std::byte* packed, float* scales, float* mins) {
  const auto* q = reinterpret_cast<const uint8_t*>(packed);
  for (int j = 0; j < 4; ++j) {
    scales[j] = static_cast<float>(q[j] & 63), mins[j] = static_cast<float>(q[j + 4] & 63);
    scales[j + 4] = static_cast<float>((q[j + 8] & 15) | (q[j] >> 6) << 4);
    mins[j + 4] = static_cast<float>((q[j + 8] >> 4) | (q[j + 4] >> 6) << 4);
  }
}

void join_six_bits(const int* scales, const int* mins, std::byte* out) {
  for (int j = 0; j < 4; ++j) {
    out[j] = static_cast<std::byte>(scales[j] | scales[j + 4] >> 4 << 6);
    out[j + 4] = static_cast<std::byte>(mins[j] | mins[j + 4] >> 4 << 6);
    out[j + 8] = static_cast<std::byte>((scales[j + 4] & 15) | (mins[j + 4] & 15) << 4);
  }
}

Status store_super(std::string_view format, const SuperCodes& codes, bool has_min, std::byte* d, std::byte* dmin) {
  TERN_OK(check_scale(format, codes.d));
  store_half(d, codes.d);
  if (!has_min) return ok();
  TERN_OK(check_scale(format, codes.dmin));
  store_half(dmin, codes.dmin);
  return ok();
}

}  // namespace tern::formats
