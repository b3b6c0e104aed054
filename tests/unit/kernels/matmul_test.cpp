// Matmuls against f64 sums, and their rows against each other byte by byte.
#include "unit/kernels/harness.h"

namespace tern::test {

namespace {

struct Packed {
  const Format* format;
  std::vector<std::byte> file;
  std::vector<float> values;
};

Packed packed_weight(std::string_view name, size_t n, size_t k, uint64_t seed) {
  Random r(seed);
  Packed w{format_by_name(name), {}, {}};
  w.file = encode(*w.format, r.reals(n * k));
  w.values = decode(*w.format, w.file);
  return w;
}

// What the kernel is given: rows as int8 blocks decode to.
std::vector<double> seen_by_kernel(const std::vector<float>& x, size_t k, bool fine = false) {
  const auto blocks = act_blocks(x, k, fine);
  std::vector<double> out(x.size());
  for (size_t r = 0; r < x.size() / k; ++r) {
    const std::byte* row = blocks.data() + r * (k / 32 * (fine ? 76 : 44));
    for (size_t i = 0; i < k; ++i) {
      float scale;
      std::memcpy(&scale, row + k + i / 32 * 4, 4);
      int code = static_cast<int8_t>(row[i]);
      if (fine) code = code * 256 + static_cast<int8_t>(row[k / 8 * 11 + i]);
      out[r * k + i] = code * static_cast<double>(scale);
    }
  }
  return out;
}

double dot(const double* x, const float* w, size_t k) {
  double sum = 0;
  for (size_t i = 0; i < k; ++i) sum += x[i] * static_cast<double>(w[i]);
  return sum;
}

// One weight, one output.
std::vector<float> int8_matmul(const Place& place, const Packed& w, const std::vector<float>& x, int64_t n, int64_t k,
                               int64_t most_rows, bool fine = false) {
  Case c;
  const int64_t rows = static_cast<int64_t>(x.size()) / k;
  const Dim m = c.symbol("T", 1, most_rows, rows);
  c.p.family = Family::matmul;
  c.p.desc = MatmulDesc{false, false, fine};
  c.p.extent = {1, m, k};
  const auto a = c.add(Role::x, {DType::f32, {m, k}}),
             b = c.add(Role::weight, {DType::f32, {n, k}, w.format}, Access::read, Origin::param),
             y = c.add(Role::out, {DType::f32, {m, n}}, Access::write);
  c.p.parts[0].n = n;
  c.p.parts[0].weights = {b};
  c.output(y);
  Bid bid;
  EXPECT_TRUE(c.choose("matmul.packed.int8", place.caps, &bid)) << c.error;
  c.pack(b, w.file);
  c.memory[a] = act_blocks(x, static_cast<size_t>(k), fine);
  c.run("matmul.packed.int8", place.caps, bid, place.interpret);
  return c.get<float>(y);
}

}  // namespace

TEST(PackedInt8, MatchesF64AndIsBitEqualOverRows) {
  for (const Place& place : byte_places()) {
    size_t turn = 0;
    for (const Format* format : packed_formats()) {
      // Other widths differ in how outputs are written, which is the same for every format.
      std::vector<std::pair<int, bool>> cases = {{96, false}, {64, true}};
      std::vector<size_t> counts = {1, 3};
      if (format == packed_formats()[0]) {
        cases = {{64, false}, {96, false}, {150, false}, {150, true}, {64, true}};
        counts = {1, 2, 3};
      }
      if (place.emulated) {
        cases = {cases[turn++ % cases.size()]};
        counts = {1};
      }
      for (const auto& [n, fine] : cases) {
        SCOPED_TRACE(std::string(place.name) + " " + std::string(format->name) + " n " + std::to_string(n) +
                     (fine ? " fine" : ""));
        const size_t k = format->block[1] <= 32 ? 192 : 512, rows = 13;
        const Packed w = packed_weight(format->name, static_cast<size_t>(n), k, 11);
        Random r(12);
        const auto x = r.reals(rows * k);
        const auto all = int8_matmul(place, w, x, n, k, 64, fine);
        if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
        const auto seen = seen_by_kernel(x, k, fine);
        for (size_t m = 0; m < rows; ++m) {
          for (size_t c = 0; c < static_cast<size_t>(n); ++c) {
            ASSERT_NEAR(all[m * static_cast<size_t>(n) + c], dot(&seen[m * k], &w.values[c * k], k), 2e-5)
                << m << " " << c;
          }
        }
        for (size_t count : counts) {
          const auto some = int8_matmul(place, w, {x.begin(), x.begin() + static_cast<std::ptrdiff_t>(count * k)}, n, k,
                                        static_cast<int64_t>(count), fine);
          if (testing::Test::HasFatalFailure()) return;
          ASSERT_EQ(std::memcmp(some.data(), all.data(), some.size() * 4), 0)
              << "rows of m = " << count << " differ from rows of m = 13";
        }
      }
    }
  }
}

namespace {

// Gate and up in one part with an epilogue, outputs as floats and as blocks; a second part beside it.
void check_parts(const Place& place, int64_t rows, int64_t k, const std::array<const char*, 3>& formats) {
  SCOPED_TRACE(std::string(place.name) + " rows " + std::to_string(rows) + " " + formats[0]);
  const int64_t n = 128, n2 = 80;
  const auto width = static_cast<size_t>(k);
  Case c;
  const Dim m = c.symbol("T", 1, rows, rows);
  c.p.family = Family::matmul;
  c.p.desc = MatmulDesc{};
  c.p.extent = {1, m, k};
  const Packed gate = packed_weight(formats[0], 128, width, 1), up = packed_weight(formats[1], 128, width, 2),
               third = packed_weight(formats[2], 80, width, 3);
  const auto a = c.add(Role::x, {DType::f32, {m, k}}),
             g = c.add(Role::weight, {DType::f32, {n, k}, gate.format}, Access::read, Origin::param),
             u = c.add(Role::weight, {DType::f32, {n, k}, up.format}, Access::read, Origin::param),
             t = c.add(Role::weight, {DType::f32, {n2, k}, third.format}, Access::read, Origin::param),
             bias = c.add(Role::extra, {DType::f32, {n}}), y = c.add(Role::out, {DType::f32, {m, n}}, Access::write),
             q = c.add(Role::out, {DType::f32, {m, n}}, Access::write),
             z = c.add(Role::out, {DType::f32, {m, n2}}, Access::write);
  c.p.operands[q].layout = {&kActInt8, {}};
  Part& part = c.p.parts[0];
  part.n = n;
  part.weights = {g, u};
  using Kind = ScalarExpr::Kind;
  part.epilogue.loads = {{bias, {0, {0, 0, 1}}}};
  part.epilogue.code = {
      {Kind::accumulator, ScalarOp::add, DType::f32, 0}, {Kind::accumulator, ScalarOp::add, DType::f32, 1},
      {Kind::op, ScalarOp::silu, DType::f32, 0},         {Kind::op, ScalarOp::mul, DType::f32, 2, 1},
      {Kind::load, ScalarOp::add, DType::f32, 0},        {Kind::op, ScalarOp::add, DType::f32, 3, 4}};
  c.output(y, 5), c.output(q, 5);
  Part second;
  second.n = n2;
  second.weights = {t};
  second.outs.push_back({z, 0, Output::Kind::map, {}});
  c.p.parts.push_back(second);
  Bid bid;
  ASSERT_TRUE(c.choose("matmul.packed.int8", place.caps, &bid)) << c.error;
  c.pack(g, gate.file), c.pack(u, up.file), c.pack(t, third.file);
  Random r(5);
  const auto x = r.reals(static_cast<size_t>(rows * k)), b = r.reals(128);
  c.memory[a] = act_blocks(x, width);
  c.set(bias, b);
  c.run("matmul.packed.int8", place.caps, bid, place.interpret);
  if (testing::Test::HasFatalFailure()) return;
  const auto seen = seen_by_kernel(x, width);
  const auto got = c.get<float>(y), other = c.get<float>(z);
  for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
    for (size_t j = 0; j < 128; ++j) {
      const double p = dot(&seen[i * width], &gate.values[j * width], width),
                   s = dot(&seen[i * width], &up.values[j * width], width);
      ASSERT_NEAR(got[i * 128 + j], p / (1 + std::exp(-p)) * s + static_cast<double>(b[j]), 1e-4);
    }
    for (size_t j = 0; j < 80; ++j)
      ASSERT_NEAR(other[i * 80 + j], dot(&seen[i * width], &third.values[j * width], width), 2e-5);
  }
  ASSERT_EQ(c.memory[q], act_blocks(got, 128));
}

}  // namespace

TEST(PackedInt8, PartsEpilogueAndBlocks) {
  for (const Place& place : places()) {
    for (int64_t rows : {1, 9}) {
      check_parts(place, rows, 96, {"q4_1", "q4_1", "q8_0"});
      check_parts(place, rows, 512, {"q6_k", "q5_1", "q1_0"});  // spans of 256, 32 and 128 columns
      check_parts(place, rows, 256, {"q2_0", "q4_k", "q3_k"});
      // Without an op for tables such a kernel is longer than its budget where products of bytes are fast.
      const bool too_long = place.caps.dot4 == Dot4::fast && !place.caps.byte_lookup && !place.caps.lockstep;
      if (!too_long) check_parts(place, rows, 256, {"iq4_nl", "iq4_nl", "q2_k"});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(PackedInt8, WindowsOfALargeWeight) {  // 2.6 MB of weights under a binding limit of 1 MiB
  Place mean = mean_place();
  const int64_t n = 2100, k = 2048;
  const Packed w = packed_weight("q4_1", static_cast<size_t>(n), static_cast<size_t>(k), 21);
  Random r(22);
  const auto x = r.reals(static_cast<size_t>(k));
  const auto y = int8_matmul(mean, w, x, n, k, 1);
  if (HasFatalFailure()) return;
  const auto seen = seen_by_kernel(x, static_cast<size_t>(k));
  for (size_t j = 0; j < static_cast<size_t>(n); j += 37)
    ASSERT_NEAR(y[j], dot(seen.data(), &w.values[j * static_cast<size_t>(k)], static_cast<size_t>(k)), 1e-3);
}

namespace {

struct FloatMatmul {
  std::string kernel = "matmul.lanes";
  int64_t batch = 1, n = 64, k = 48, most_rows = 64;
  bool batched = false, kn = false;
  DType weight = DType::f32;
  const Packed* packed = nullptr;
};

std::vector<float> float_matmul(const Place& place, const FloatMatmul& f, const std::vector<float>& w,
                                const std::vector<float>& x) {
  Case c;
  const int64_t rows = static_cast<int64_t>(x.size()) / f.k / f.batch;
  const Dim m = c.symbol("T", 1, f.most_rows, rows);
  c.p.family = Family::matmul;
  c.p.desc = MatmulDesc{f.batched, f.kn};
  c.p.policy.precise = true;
  c.p.extent = {f.batch, m, f.k};
  Shape ws = f.kn ? Shape{f.k, f.n} : Shape{f.n, f.k}, xs{m, f.k}, ys{m, f.n};
  if (f.batched) ws.insert(ws.begin(), f.batch);
  if (f.batch > 1) xs.insert(xs.begin(), f.batch), ys.insert(ys.begin(), f.batch);
  const bool made = f.kernel != "matmul.lanes";
  const auto a = c.add(Role::x, {DType::f32, xs}),
             b = c.add(Role::weight, {f.weight, ws, f.packed ? f.packed->format : nullptr}, Access::read,
                       made ? Origin::temp : Origin::param),
             y = c.add(Role::out, {DType::f32, ys}, Access::write);
  c.p.parts[0].n = f.n;
  c.p.parts[0].weights = {b};
  c.output(y);
  Bid bid;
  EXPECT_TRUE(c.choose(f.kernel, place.caps, &bid)) << c.error;
  if (testing::Test::HasNonfatalFailure()) return {};
  c.set(a, x);
  if (f.packed) {
    c.pack(b, f.packed->file);
  } else {
    std::vector<std::byte> file(w.size() * dtype_bytes(f.weight));
    for (size_t i = 0; i < w.size(); ++i) {
      const uint16_t h = f.weight == DType::bf16 ? f32_to_bf16(w[i]) : f32_to_f16(w[i]);
      if (f.weight == DType::f32)
        std::memcpy(&file[i * 4], &w[i], 4);
      else
        std::memcpy(&file[i * 2], &h, 2);
    }
    c.pack(b, file);
  }
  c.run(f.kernel, place.caps, bid, place.interpret);
  return c.get<float>(y);
}

void check_float(const Place& place, FloatMatmul f, size_t rows, std::vector<float> w, double tolerance) {
  SCOPED_TRACE(std::string(place.name) + " " + f.kernel + " n " + std::to_string(f.n) + " k " + std::to_string(f.k) +
               " batch " + std::to_string(f.batch));
  const size_t n = static_cast<size_t>(f.n), k = static_cast<size_t>(f.k), batch = static_cast<size_t>(f.batch);
  Random r(31);
  const auto x = r.reals(batch * rows * k);
  const auto y = float_matmul(place, f, w, x);
  if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
  if (f.weight == DType::f16)
    for (float& v : w) v = f16_to_f32(f32_to_f16(v));
  if (f.weight == DType::bf16)
    for (float& v : w) v = bf16_to_f32(f32_to_bf16(v));
  for (size_t b = 0; b < batch; ++b) {
    for (size_t m = 0; m < rows; ++m) {
      for (size_t c = 0; c < n; ++c) {
        double want = 0;
        for (size_t i = 0; i < k; ++i) {
          const size_t at = (f.batched ? b * n * k : 0) + (f.kn ? i * n + c : c * k + i);
          want += static_cast<double>(x[(b * rows + m) * k + i]) * static_cast<double>(w[at]);
        }
        ASSERT_NEAR(y[(b * rows + m) * n + c], want, tolerance) << b << " " << m << " " << c;
      }
    }
  }
  if (f.batch > 1 || rows < 2) return;
  for (size_t count : {1u, 2u}) {
    f.most_rows = static_cast<int64_t>(count);
    const auto some = float_matmul(place, f, w, {x.begin(), x.begin() + static_cast<std::ptrdiff_t>(count * k)});
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_EQ(std::memcmp(some.data(), y.data(), some.size() * 4), 0) << "rows of m = " << count << " differ";
  }
}

}  // namespace

TEST(FloatMatmul, TilesDenseAndBatches) {
  for (const Place& place : places()) {
    Random r(41);
    for (DType type : {DType::f32, DType::f16, DType::bf16})
      check_float(place, {.n = 70, .k = 52, .weight = type}, 11, r.reals(70 * 52), 1e-4);
    check_float(place, {.n = 128, .k = 33}, 5, r.reals(128 * 33), 1e-4);
    check_float(place, {.n = 70, .k = 40, .kn = true}, 11, r.reals(70 * 40), 1e-4);
    check_float(place, {.n = 45, .k = 40, .kn = true}, 1, r.reals(45 * 40), 1e-4);
    check_float(place, {.batch = 3, .n = 64, .k = 24, .batched = true, .kn = true}, 4, r.reals(3 * 64 * 24), 1e-4);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(FloatMatmul, RowsAlongK) {
  for (const Place& place : places()) {
    Random r(42);
    check_float(place, {.kernel = "matmul.dots", .n = 10, .k = 64}, 7, r.reals(10 * 64), 1e-4);
    check_float(place, {.kernel = "matmul.dots", .n = 9, .k = 45}, 5, r.reals(9 * 45), 1e-4);
    check_float(place, {.kernel = "matmul.dots", .batch = 3, .n = 6, .k = 20, .batched = true}, 5, r.reals(3 * 6 * 20),
                1e-4);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(FloatMatmul, StagedBlocks) {
  for (const Place& place : places()) {
    Random r(43);
    for (bool kn : {true, false}) {
      SCOPED_TRACE(kn);
      const size_t rows = 70, n = 45, k = 300;
      const auto w = r.reals(n * k), x = r.reals(rows * k);
      FloatMatmul f{.kernel = "matmul.staged", .n = 45, .k = 300, .most_rows = 128, .kn = kn};
      const auto y = float_matmul(place, f, w, x);
      if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
      for (size_t m = 0; m < rows; ++m) {
        for (size_t c = 0; c < n; ++c) {
          double want = 0;
          for (size_t i = 0; i < k; ++i) {
            want += static_cast<double>(x[m * k + i]) * static_cast<double>(w[kn ? i * n + c : c * k + i]);
          }
          ASSERT_NEAR(y[m * n + c], want, 2e-4) << m << " " << c;
        }
      }
      if (!kn) continue;  // the same sums as the kernel for few rows
      f.kernel = "matmul.lanes", f.most_rows = 1;
      const auto one = float_matmul(place, f, w, {x.begin(), x.begin() + 300});
      ASSERT_EQ(std::memcmp(one.data(), y.data(), n * 4), 0);
    }
    const auto w = r.reals(3 * 20 * 40);
    FloatMatmul f{.kernel = "matmul.staged", .batch = 3, .n = 20, .k = 40, .most_rows = 64, .batched = true};
    check_float(place, f, 17, w, 1e-4);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(FloatMatmul, PackedWeightsPrecisely) {
  for (const Place& place : places()) {
    for (const Format* format : packed_formats()) {
      const int64_t k = format->block[1] <= 32 ? 96 : 512;
      const Packed w = packed_weight(format->name, 80, static_cast<size_t>(k), 51);
      check_float(place, {.n = 80, .k = k, .packed = &w}, 9, w.values, 2e-5 * static_cast<double>(k) / 96);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace tern::test
