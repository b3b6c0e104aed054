// Kernels and inputs that code and texts are both compared over.
#pragma once

#include "unit/emit/harness.h"

namespace tern::test {

inline constexpr uint32_t kGroups = 3;

struct Inputs {
  kir::Buffer fa, fb, ia, ib, ua, ub;
};
inline Inputs declare_inputs() {
  using namespace kir;
  Inputs in;
  in.fa = buffer("fa", f32), in.fb = buffer("fb", f32);
  in.ia = buffer("ia", i32), in.ib = buffer("ib", i32);
  in.ua = buffer("ua", u32), in.ub = buffer("ub", u32);
  return in;
}
// n elements of each, infinities, NaN and `tiny` among them; no divisor is 0 or -1.
inline Bytes input_bytes(Random r, uint32_t n, float tiny) {
  std::vector<float> fa(n), fb(n);
  std::vector<int32_t> ia(n), ib(n);
  std::vector<uint32_t> ua(n), ub(n);
  const float special[] = {0.f,  -0.f, INFINITY, -INFINITY, NAN,   tiny,         3e38f, 0.5f,
                           1.5f, 2.5f, -2.5f,    65520.f,   6e-8f, 2147483648.f, -3e9f, 5e9f};
  for (uint32_t i = 0; i < n; ++i) {
    fa[i] = i % 3 == 0 ? special[r.below(16)] : r.real();
    fb[i] = i % 5 == 0 ? special[r.below(16)] : r.real();
    ia[i] = static_cast<int32_t>(r.next()), ib[i] = static_cast<int32_t>(r.below(2001)) - 1000;
    if (ib[i] == 0 || ib[i] == -1) ib[i] = 3;
    ua[i] = r.next(), ub[i] = r.below(1000) + 1;
  }
  return {bytes_of(fa), bytes_of(fb), bytes_of(ia), bytes_of(ib), bytes_of(ua), bytes_of(ub)};
}

// Branches and loops within each other. x: 5 * lanes whole numbers a group; y: one a lane; z: one a group; n is 5.
inline Result<kir::Kernel> control_kernel(uint32_t lanes, const Caps& caps) {
  using namespace kir;
  B b("control", lanes, caps);
  Buffer x = buffer("x", i32), y = buffer("y", i32, write), z = buffer("z", i32, write);
  const int L = static_cast<int>(lanes);
  const V i = group() * L + lane();
  const Var sum = var(i32, 0), hits = var(i32, 0);
  const V n = dim("n");
  For(0, n, [&](V k) {
    const V v = x[(group() * n + k) * L + lane()];
    If(v > 10, [&] {
      const Var inner = var(i32, v);
      If(v % 2 == 0, [&] { inner.set(inner.get() * 3); });
      For(1, 3, [&](V t) { inner.set(inner.get() + cast(i32, t)); });
      If(v > 20, [&] { inner.set(inner.get() / (v - 20)); });
      sum.set(sum.get() + inner.get());
      If(inner.get() > 100, [&] { hits.set(hits.get() + 1); }, [&] { hits.set(hits.get() - 1); });
    });
    If(k == 2, [&] { sum.set(sum.get() + 1000); });
  });
  y.store(i, sum.get() * 7 + hits.get());
  const V total = wg_add(sum.get());
  If(lane() == 0, [&] { z.store(group(), total); });
  return b.finish();
}
inline Bytes control_bytes(uint32_t lanes) {
  std::vector<int32_t> data(lanes * 5 * kGroups);
  Random r(lanes);
  for (auto& v : data) v = static_cast<int32_t>(r.below(60)) - 10;
  return {bytes_of(data), std::vector<std::byte>(lanes * kGroups * 4), std::vector<std::byte>(kGroups * 4)};
}

// Workgroup memory and what lanes do together, for at least 5 lanes. x and y: one f32 a lane.
inline Result<kir::Kernel> workgroup_kernel(uint32_t lanes, const Caps& caps) {
  using namespace kir;
  B b("shared", lanes, caps);
  const int L = static_cast<int>(lanes);
  Buffer x = buffer("x", f32), y = buffer("y", f32, write);
  Shared s = shared("s", f32, lanes * 2), w = shared("w", u32, lanes);
  const V i = group() * L + lane();
  s.store(lane(), x[i]);
  s.store(lane() + L, x[i] * 2.f);
  w.store(L - 1 - lane(), lane());
  barrier();
  const V mirrored = s[L - 1 - lane()] + s[(lane() * 5) % (2 * L)] + cast(f32, w[lane()]);
  const V up = wg_exclusive_add(x[i]);
  barrier();
  If(lane() < 5, [&] { s.store(lane() * 2, 7.f); });
  barrier();
  const V third = wg_broadcast(x[i], 3), all = wg_add(x[i]), least = wg_min(x[i]), most = wg_max(mirrored);
  y.store(i, mirrored + s[4] + third + up + all + least + most);
  return b.finish();
}

}  // namespace tern::test
