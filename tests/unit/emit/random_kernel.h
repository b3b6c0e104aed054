// Random kernels: whatever the builder accepts. Inputs f (f32), u (u32), h (f16), c (u8) of kCount elements; outputs
// yf, yu, yh of one element a lane; the dim n.
#pragma once

#include "unit/emit/harness.h"

namespace tern::test {

namespace random_kernels {
using namespace kir;

inline constexpr uint32_t kCount = 256;  // elements of an input

class RandomKernel {
 public:
  RandomKernel(uint64_t seed, const Caps& caps) : r_(seed), lanes_(pick_lanes()), b_("random", lanes_, caps) {}

  uint32_t lanes() const { return lanes_; }

  Result<Kernel> make() {
    b_.node_budget(5000);
    f_ = buffer("f", f32), u_ = buffer("u", u32), h_ = buffer("h", f16), c_ = buffer("c", u8);
    yf_ = buffer("yf", f32, write), yu_ = buffer("yu", u32, write), yh_ = buffer("yh", f16, write);
    n_ = dim("n");
    index_ = group() * static_cast<int>(lanes_) + lane();
    words_ = {lane(), index_, n_};
    floats_ = {f_[lane()], cast(f32, index_)};
    const Var sum = var(0.f), bits = var(u32, 0);
    vars_f_.push_back(sum), vars_u_.push_back(bits);
    statements(3, 7);
    yf_.store(index_, sum.get() + real());
    yu_.store(index_, bits.get() ^ word());
    const V v = real();
    yh_.store(index_, select(v == v, clamp(v, -60000.f, 60000.f), V(1.f)));
    return b_.finish();
  }

 private:
  uint32_t pick_lanes() {
    const uint32_t all[] = {1, 4, 8, 16, 24, 32, 64};
    return all[r_.below(7)];
  }

  V word() {
    const V a = words_[r_.below(static_cast<uint32_t>(words_.size()))],
            b = words_[r_.below(static_cast<uint32_t>(words_.size()))];
    const int k = static_cast<int>(r_.below(9)) + 1;
    V out;
    switch (r_.below(14)) {
      case 0: out = a + b; break;
      case 1: out = a - b; break;
      case 2: out = a * k; break;
      case 3: out = a / k; break;
      case 4: out = a % (b | 1); break;
      case 5: out = a / (b | 1); break;
      case 6: out = a << (k & 3); break;
      case 7: out = (a >> (k & 7)) + k; break;
      case 8: out = a & (b ^ 0x5a); break;
      case 9: out = min(a, b); break;
      case 10: out = u_[at()]; break;
      case 11: out = c_[at()]; break;
      case 12: out = select(flag(), a, b); break;
      default: out = vars_u_[r_.below(static_cast<uint32_t>(vars_u_.size()))].get(); break;
    }
    words_.push_back(out);
    return out;
  }

  V real() {
    const V a = floats_[r_.below(static_cast<uint32_t>(floats_.size()))],
            b = floats_[r_.below(static_cast<uint32_t>(floats_.size()))];
    V out;
    switch (r_.below(12)) {
      case 0: out = a + b; break;
      case 1: out = a * b; break;
      case 2: out = a - b; break;
      case 3: out = fma(a, b, a); break;
      case 4: out = min(a, b); break;
      case 5: out = max(a, b); break;
      case 6: out = abs(a) + floor(b); break;
      case 7: out = f_[at()]; break;
      case 8: out = h_[at()]; break;
      case 9: out = cast(f32, word()); break;
      case 10: out = select(flag(), a, b); break;
      default: out = vars_f_[r_.below(static_cast<uint32_t>(vars_f_.size()))].get(); break;
    }
    out = select(abs(out) < 1e6f, out, V(0.25f));  // sums stay finite, so that every bit can be compared
    floats_.push_back(out);
    return out;
  }

  V flag() {
    const V a = words_[r_.below(static_cast<uint32_t>(words_.size()))];
    switch (r_.below(5)) {
      case 0: return a < static_cast<int>(r_.below(40));
      case 1: return (a & 3) == 1;
      case 2: return lane() < static_cast<int>(r_.below(lanes_ + 1));
      case 3: return floats_[r_.below(static_cast<uint32_t>(floats_.size()))] < 0.5f;
      default: return n_ < static_cast<int>(r_.below(8));
    }
  }

  // An index of an input: patterns that become vectors, and anything else.
  V at() {
    const int k = static_cast<int>(r_.below(3)) + 1;
    switch (r_.below(6)) {
      case 0: return lane() * k;
      case 1: return lane() / (k + 1) + k;
      case 2: return group() * 8 + lane();
      case 3: return group() + k;
      case 4: return (lane() ^ k) & 127;
      default: return words_[r_.below(static_cast<uint32_t>(words_.size()))] % static_cast<int>(kCount);
    }
  }

  void statements(int depth, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const size_t words = words_.size(), floats = floats_.size(), vars_f = vars_f_.size(), vars_u = vars_u_.size();
      auto inner = [&] {
        statements(depth - 1, 3);
        words_.resize(words), floats_.resize(floats), vars_f_.resize(vars_f), vars_u_.resize(vars_u);  // out of scope
      };
      switch (r_.below(depth > 0 ? 8 : 5)) {
        case 0: vars_f_.push_back(var(f32, real())); break;
        case 1: vars_u_.push_back(var(u32, word())); break;
        case 2: vars_f_[r_.below(static_cast<uint32_t>(vars_f_.size()))].set(real()); break;
        case 3: vars_u_[r_.below(static_cast<uint32_t>(vars_u_.size()))].set(word()); break;
        case 4: word(), real(); break;
        case 5: If(flag(), inner); break;
        case 6: {
          const V cond = flag();
          If(cond, inner, inner);
          break;
        }
        default:
          For(0, n_ % 4 + 1, [&](V k) {
            words_.push_back(k);
            inner();
          });
          break;
      }
    }
  }

  Random r_;
  uint32_t lanes_;
  B b_;
  Buffer f_, u_, h_, c_, yf_, yu_, yh_;
  V n_, index_;
  std::vector<V> words_, floats_;
  std::vector<Var> vars_f_, vars_u_;
};

// Buffers for one, with room for what `out` lanes store.
inline Bytes random_inputs(uint64_t seed, size_t out) {
  Random r(seed);
  std::vector<float> f(kCount);
  std::vector<uint32_t> u(kCount);
  std::vector<uint16_t> h(kCount);
  std::vector<uint8_t> c(kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    f[i] = r.real(), u[i] = r.next() % 5000;
    h[i] = static_cast<uint16_t>(0x3000 + r.below(0x1000)), c[i] = static_cast<uint8_t>(r.below(256));
  }
  const std::vector<std::byte> words(out * 4), halves((out * 2 + 3) / 4 * 4);
  return {bytes_of(f), bytes_of(u), bytes_of(h), bytes_of(c), words, words, halves};
}

}  // namespace random_kernels
using random_kernels::kCount, random_kernels::RandomKernel, random_kernels::random_inputs;

}  // namespace tern::test
