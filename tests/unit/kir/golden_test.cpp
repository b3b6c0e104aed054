// Printed kernels against tests/golden/kir. TERN_UPDATE_GOLDEN=1 in the environment rewrites them; review the diff.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

#include "kir/print.h"
#include "kir_test.h"

namespace tern::kir {
namespace {

void expect_golden(const Result<Kernel>& kernel, const std::string& name) {
  ASSERT_OK(kernel);
  const std::string path = std::string(TERN_TEST_GOLDEN) + "/kir/" + name + ".txt", text = print(in_one_order(*kernel));
  if (std::getenv("TERN_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  std::stringstream want;
  want << file.rdbuf();
  EXPECT_EQ(text, want.str()) << path;
}

Result<Kernel> rmsnorm(const Caps& caps, uint32_t L, int U) {  // one workgroup a row, L lanes, U accumulators a lane
  B b("rmsnorm", L, caps);
  Buffer x = buffer("x", f32), w = buffer("w", f32), y = buffer("y", f32, Access::write);
  V n = dim("cols"), steps = dim("steps"), base = group() * n;
  std::vector<Var> acc = vars(U, 0.f);
  const auto each = [&](auto body) {
    For(0, steps, [&](V i) {
      for (int u = 0; u < U; ++u) {
        V c = (i * U + u) * L + lane();
        If(c < n, [&] { body(u, c); });
      }
    });
  };
  each([&](int u, V c) {
    V v = x[base + c];
    acc[u].set(fma(v, v, acc[u].get()));
  });
  V inv = 1.f / sqrt(wg_add(sum(acc)) / cast(f32, n) + 1e-5f);
  each([&](int, V c) {
    V v = x[base + c] * inv;
    y.store(base + c, v * w[c]);
  });
  return b.finish();
}

struct Packed {
  int bits, group, zero;
  V codes4(const V& word, int j) const { return (word >> bits * j) & (((1u << bits) - 1) * 0x01010101u); }
};

Result<Kernel> matvec_int8(const Caps& caps, Packed p, uint32_t R, uint32_t KS) {  // R row lanes x KS slices of K
  B b("matvec", R * KS, caps);
  b.node_budget(1000);  // the emulated dot4 is long
  Buffer codes = buffer("codes", u32), scales = buffer("scales", f16), aq = buffer("aq", u32), as = buffer("as", f32),
         sums = buffer("sums", i32), y = buffer("y", f32, Access::write);
  V ng = dim("groups_k"), row = lane() % R, ks = lane() / R;
  Var acc = var(0.f);
  const uint32_t blocks = static_cast<uint32_t>(p.group) / 32;
  For(0, ng / KS, [&](V i) {
    V g = i * KS + ks, total{};
    for (uint32_t blk = 0; blk < blocks; ++blk) {
      V q = g * blocks + blk, d = sums[q] * -p.zero;
      for (int w = 0; w < p.bits; ++w) {
        V word = codes[((group() * ng + g) * (blocks * p.bits) + blk * p.bits + w) * R + row];
        for (int j = 0; j < 8 / p.bits; ++j) {
          V four = p.codes4(word, j);
          d = dot4(d, four, aq[q * 8 + (w * 8 / p.bits + j)]);
        }
      }
      V f = cast(f32, d) * as[q];
      total = blk ? total + f : f;
    }
    V scale = scales[(group() * ng + g) * R + row];
    acc.set(fma(scale, total, acc.get()));
  });
  if (KS == 1) {
    y.store(group() * R + row, acc.get());
  } else {
    Shared part = shared("part", f32, R * KS);
    part.store(lane(), acc.get());
    barrier();
    If(ks == 0, [&] {
      V all = part[row];
      for (uint32_t s = 1; s < KS; ++s) all = all + part[s * R + row];
      y.store(group() * R + row, all);
    });
  }
  return b.finish();
}

Caps poor_caps() {
  Caps caps = test_caps();
  caps.f16_storage = caps.byte_storage = caps.fma = caps.i64 = caps.f64 = false;
  return caps;
}

TEST(Golden, Rmsnorm) {
  expect_golden(rmsnorm(lockstep_caps(), 16, 2), "rmsnorm_lockstep");
  expect_golden(rmsnorm(poor_caps(), 16, 1), "rmsnorm_poor");
  Caps gpu = test_caps();
  gpu.subgroup = {8, 32, false};
  expect_golden(rmsnorm(gpu, 64, 1), "rmsnorm_subgroups");
}

TEST(Golden, Matvec) {
  expect_golden(matvec_int8(lockstep_caps(), {4, 32, 8}, 64, 1), "matvec_q4_lockstep");
  expect_golden(matvec_int8(poor_caps(), {2, 32, 1}, 8, 2), "matvec_ternary_poor");
}

TEST(Golden, ExpAndPow) {
  B b("functions", 8, lockstep_caps());
  Buffer x = buffer("x", f32), y = buffer("y", f32, Access::write, {.streaming = true});
  V i = group() * 8 + lane(), v = x[i];
  V e = exp(v);
  y.store(i, tanh(e));
  expect_golden(b.finish(), "exp_tanh");
}

TEST(Kernels, RmsnormAgainstF64) {
  const uint32_t rows = 3, cols = 37;
  std::vector<float> x(rows * cols), w(cols), y(rows * cols);
  std::mt19937 rng(4);
  std::uniform_real_distribution<float> u(-2, 2);
  for (float& v : x) v = u(rng);
  for (float& v : w) v = u(rng);
  Caps gpu = test_caps();
  gpu.subgroup = {8, 32, false};
  struct Run {
    Result<Kernel> kernel;
    uint32_t steps, subgroup;
  };
  Run runs[] = {{rmsnorm(lockstep_caps(), 16, 2), 2, 0},
                {rmsnorm(poor_caps(), 16, 1), 3, 1},
                {rmsnorm(gpu, 64, 1), 1, 8},
                {rmsnorm(gpu, 64, 1), 1, 32}};
  for (Run& run : runs) {
    ASSERT_OK(run.kernel);
    y.assign(y.size(), NAN);
    ASSERT_OK(run_kernel(*run.kernel, {bytes_of(x), bytes_of(w), bytes_of(y)}, {cols, run.steps}, rows, run.subgroup));
    for (uint32_t r = 0; r < rows; ++r) {
      double sq = 0;
      for (uint32_t c = 0; c < cols; ++c) sq += double{x[r * cols + c]} * x[r * cols + c];
      for (uint32_t c = 0; c < cols; ++c)
        EXPECT_NEAR(y[r * cols + c], x[r * cols + c] / std::sqrt(sq / cols + 1e-5) * w[c], 1e-6);
    }
  }
}

TEST(Kernels, MatvecAgainstF64) {
  for (const Packed p : {Packed{4, 32, 8}, Packed{2, 64, 1}, Packed{1, 32, 0}}) {
    for (const auto& [caps, R, KS] : {std::tuple{lockstep_caps(), 8u, 1u}, std::tuple{poor_caps(), 4u, 4u}}) {
      auto kernel = matvec_int8(caps, p, R, KS);
      ASSERT_OK(kernel);
      const uint32_t groups = 2, ng = 4, K = ng * static_cast<uint32_t>(p.group), blocks = K / 32,
                     words = static_cast<uint32_t>(p.bits);
      std::mt19937 rng(5);
      std::vector<uint32_t> codes(groups * blocks * words * R), aq(K / 4);
      std::vector<uint16_t> scales(groups * ng * R);
      std::vector<float> as(blocks), y(groups * R);
      std::vector<int32_t> sums(blocks, 0);
      std::vector<int8_t> act(K);
      for (auto& v : codes) v = static_cast<uint32_t>(rng());
      for (auto& v : scales) v = f32_to_f16(static_cast<float>(rng() % 100) / 64 + 0.1f);
      for (auto& v : as) v = static_cast<float>(rng() % 100) / 100 + 0.01f;
      for (uint32_t k = 0; k < K; ++k) {
        act[k] = static_cast<int8_t>(rng() % 255 - 127);
        sums[k / 32] += act[k];
        aq[k / 4] |= uint32_t{static_cast<uint8_t>(act[k])} << (k % 4 * 8);
      }
      ASSERT_OK(run_kernel(*kernel,
                           {bytes_of(codes), bytes_of(scales), bytes_of(aq), bytes_of(as), bytes_of(sums), bytes_of(y)},
                           {ng}, groups, 1));
      for (uint32_t r = 0; r < groups * R; ++r) {
        double want = 0;
        for (uint32_t k = 0; k < K;
             ++k) {  // byte i of a word, field j: the code of k = 4 j + i among the word's 32 / bits
          const uint32_t blk = k / 32, per_word = 32 / words, w = k % 32 / per_word, j = k % per_word / 4, i = k % 4;
          const uint32_t word = codes[((r / R) * blocks * words + blk * words + w) * R + r % R];
          const int code = static_cast<int>(word >> (8 * i + words * j)) & ((1 << p.bits) - 1);
          const double scale = f16_to_f32(scales[((r / R) * ng + k / static_cast<uint32_t>(p.group)) * R + r % R]);
          want += scale * as[blk] * (code - p.zero) * act[k];
        }
        EXPECT_NEAR(y[r], want, 1e-4 * std::fabs(want) + 1e-2) << p.bits << " bits, row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace tern::kir
