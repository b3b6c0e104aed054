// store_kv and attention over every kind of KV in the reference evaluation, beside the formulas of tern/state/kv.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/reference.h"
#include "run.h"
#include "tern/ops/attention.h"

namespace tern {
namespace {

constexpr int64_t kSize = 96, kPage = 4;

// A row as it comes back, block by block.
std::vector<double> rounded(KvKind kind, std::vector<double> x) {
  for (size_t b = 0; b < x.size(); b += 32) {
    double top = 0, most = 0;
    for (size_t i = b; i < b + 32; ++i) {
      if (std::abs(x[i]) > std::abs(top)) top = x[i];
    }
    most = std::abs(top);
    const auto half = [](double v) { return static_cast<double>(f16_to_f32(f32_to_f16(static_cast<float>(v)))); };
    for (size_t i = b; i < b + 32; ++i) {
      const auto f = static_cast<float>(x[i]);
      const double d8 = half(most / 127), d4 = half(-top / 8);
      x[i] = kind == KvKind::f32    ? static_cast<double>(f)
             : kind == KvKind::f16  ? half(x[i])
             : kind == KvKind::bf16 ? static_cast<double>(bf16_to_f32(f32_to_bf16(f)))
             : kind == KvKind::q8   ? d8 * std::nearbyint(x[i] / d8)
                                    : d4 * std::clamp(std::nearbyint(x[i] / d4), -8.0, 7.0);
    }
  }
  return x;
}

std::vector<double> wave(int salt) {
  std::vector<double> out;
  for (int i = 0; i < kSize; ++i)
    out.push_back(static_cast<double>(static_cast<float>(std::sin(0.7 * i * (salt + 1) + salt) * (1 + i % 3))));
  return out;
}

// Two keys; the weight of the second is a logistic function of the difference of both scores.
TEST(Kv, RowsComeBackRounded) {
  for (const KvKind kind : kKvKinds) {
    SCOPED_TRACE(kv_kind_name(kind));
    Builder b;
    const Value slot = b.input("slot", DType::i32, {2}), k = b.input("k", DType::f32, {2, 1, kSize}),
                v = b.input("v", DType::f32, {2, 1, kSize}), q = b.input("q", DType::f32, {1, 1, kSize});
    PagedKv kv;
    kv.kind = kind, kv.page = kPage;
    kv.k_state = store_kv(b, kv_state(b, "ks", kind, true, 3, 1, kSize, kPage), slot, k, kind, true, kPage);
    kv.v_state = store_kv(b, kv_state(b, "vs", kind, false, 3, 1, kSize, kPage), slot, v, kind, false, kPage);
    kv.row_start = b.input("row_start", DType::i32, {2}), kv.kv_length = b.input("kv_length", DType::i32, {1});
    kv.pages = b.input("pages", DType::i32, {1, 1}), kv.position = b.input("position", DType::i32, {1});
    b.output("y", attention(b, q, kv, {.scale = 0.02}));
    auto g = b.finish();
    ASSERT_TRUE(g.ok()) << g.error().message();
    Leaves leaves;
    const auto ints = [&](const char* name, std::vector<int64_t> shape, std::vector<int64_t> values) {
      RefTensor t = ref_zeros(DType::i32, std::move(shape));
      t.i = std::move(values);
      leaves[name] = std::move(t);
    };
    ints("slot", {2}, {8, 9}), ints("row_start", {2}, {0, 1}), ints("kv_length", {1}, {2});
    ints("pages", {1, 1}, {2}), ints("position", {1}, {1});
    const auto reals = [&](const char* name, int64_t rows, std::vector<double> values) {
      RefTensor t = ref_zeros(DType::f32, {rows, 1, kSize});
      t.f = std::move(values);
      leaves[name] = std::move(t);
    };
    const auto both = [](std::vector<double> x, const std::vector<double>& y) {
      x.insert(x.end(), y.begin(), y.end());
      return x;
    };
    reals("k", 2, both(wave(0), wave(1))), reals("v", 2, both(wave(2), wave(3))), reals("q", 1, wave(4));
    for (const Port& port : g->ports()) {
      if (port.kind != PortKind::state) continue;
      std::vector<int64_t> shape;
      for (const Dim d : g->type(port.value).shape) shape.push_back(*d.constant());
      leaves[port.name] = ref_zeros(g->type(port.value).dtype, shape);
    }
    const auto r = evaluate(*g, leaves, {});
    ASSERT_TRUE(r.ok()) << r.error().message();
    const auto k0 = rounded(kind, wave(0)), k1 = rounded(kind, wave(1)), v0 = rounded(kind, wave(2)),
               v1 = rounded(kind, wave(3)), x = wave(4);
    double apart = 0;
    for (size_t i = 0; i < x.size(); ++i) apart += 0.02 * x[i] * (k1[i] - k0[i]);
    const double second = 1 / (1 + std::exp(-apart));
    const auto& y = r->outputs.at("y").f;
    ASSERT_EQ(y.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], v0[i] + second * (v1[i] - v0[i]), 1e-6) << i;
  }
}

}  // namespace
}  // namespace tern
