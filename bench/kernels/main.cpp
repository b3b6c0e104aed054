// bench_kernels [--json] [--only text] [--assembly]: every kernel's time beside its roof, measured in the same run, and
// beside a plain loop that does the same work (its slow twin).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "bench.h"

namespace tern::bench {
namespace {

struct Row {
  std::string name, bound;  // bound: "read", "flop", "int8"
  double seconds = 0, twin = 0, work = 0, roof = 0;
};

struct Options {
  bool json = false;
  std::string only;
};

class Table {
 public:
  Table(const Roofs& roofs, const Options& o) : roofs_(roofs), o_(o) {}
  bool wants(const std::string& name) const { return o_.only.empty() || name.find(o_.only) != std::string::npos; }
  // work: bytes or operations of one run. twin: null where there is none.
  void add(const std::string& name, const std::string& bound, double work, Instance& i,
           const std::function<void()>& twin) {
    std::vector<std::function<void()>> f = {[&] { i.run(); }};
    if (twin) f.push_back(twin);
    const auto t = medians(f);
    Row r{name, bound,
          t[0], twin ? t[1] : 0,
          work, bound == "read" ? roofs_.read : bound == "flop" ? roofs_.flop : roofs_.int8};
    rows_.push_back(r);
    if (o_.json) return;
    std::printf("%-34s %10.1f us  %8.2f G%s/s  %5.1f %% of roof", name.c_str(), r.seconds * 1e6,
                work / r.seconds * 1e-9, bound == "read" ? "B" : "op", 100 * work / r.seconds / r.roof);
    if (twin) std::printf("  %6.2f x slow twin", r.twin / r.seconds);
    std::printf("\n");
    std::fflush(stdout);
  }
  void finish() const {
    std::vector<double> c = compile_seconds();
    std::sort(c.begin(), c.end());
    const double median = c.empty() ? 0 : c[c.size() / 2], most = c.empty() ? 0 : c.back();
    if (!o_.json) {
      std::printf("compile: %zu kernels, median %.1f ms, most %.1f ms\n", c.size(), median * 1e3, most * 1e3);
      return;
    }
    std::printf(
        "{\"roofs\":{\"read\":%.4g,\"flop\":%.4g,\"int8\":%.4g},\"compile\":{\"kernels\":%zu,\"median_s\":%.4g,\"max_"
        "s\":%.4g},\"kernels\":[",
        roofs_.read, roofs_.flop, roofs_.int8, c.size(), median, most);
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& r = rows_[i];
      std::printf(
          "%s{\"name\":\"%s\",\"bound\":\"%s\",\"seconds\":%.6g,\"twin_seconds\":%.6g,\"work\":%.6g,\"share\":%.4f}",
          i ? "," : "", r.name.c_str(), r.bound.c_str(), r.seconds, r.twin, r.work, r.work / r.seconds / r.roof);
    }
    std::printf("]}\n");
  }

 private:
  Roofs roofs_;
  Options o_;
  std::vector<Row> rows_;
};

void packed(Table& t, const char* format, int64_t m, int64_t n, int64_t k, bool precise = false,
            bool residual = false) {
  const std::string name = std::string(precise ? "f32 x " : "int8 x ") + format + " " + std::to_string(m) + "x" +
                           std::to_string(n) + "x" + std::to_string(k) + (residual ? " + residual" : "");
  if (!t.wants(name)) return;
  Instance i;
  i.p.family = Family::matmul;
  i.p.desc = MatmulDesc{};
  i.p.policy.precise = precise;
  i.p.extent = {1, m, k};
  const auto x = i.add(Role::x, {DType::f32, {m, k}}),
             w = i.add(Role::weight, {DType::f32, {n, k}, format_by_name(format)}, Access::read, Origin::param),
             y = i.add(Role::out, {DType::f32, {m, n}}, Access::write);
  i.p.parts[0].n = n;
  i.p.parts[0].weights = {w};
  i.output(y);
  if (residual) {
    const auto r = i.add(Role::extra, {DType::f32, {m, n}});
    Part& part = i.p.parts[0];
    using Kind = ScalarExpr::Kind;
    part.epilogue.loads = {{r, {0, {0, n, 1}}}};
    part.epilogue.code = {{Kind::accumulator, ScalarOp::add, DType::f32, 0},
                          {Kind::load, ScalarOp::add, DType::f32, 0},
                          {Kind::op, ScalarOp::add, DType::f32, 0, 1}};
    part.outs[0].result = 2;
  }
  i.prepare(precise ? "matmul.lanes" : "matmul.packed.int8");
  (void)x;
  // The twin: int8 codes and one dot a row, written plainly.
  std::vector<int8_t> codes(static_cast<size_t>(n * k), 3), acts(static_cast<size_t>(k), 2);
  std::vector<float> out(static_cast<size_t>(n));
  const bool twin = m == 1;
  t.add(
      name,
      m == 1    ? "read"
      : precise ? "flop"
                : "int8",
      m == 1 ? static_cast<double>(i.bytes(w)) : 2.0 * static_cast<double>(m * n * k), i,
      !twin ? std::function<void()>() : [&] {
        for (size_t r = 0; r < out.size(); ++r) {
          float sum = 0;
          for (size_t b = 0; b < acts.size(); b += 32) {
            int dot = 0;
            for (size_t c = 0; c < 32; ++c) dot += codes[r * acts.size() + b + c] * acts[b + c];
            sum += static_cast<float>(dot) * 0.01f;
          }
          out[r] = sum;
        }
      });
}

// x and y in f32; the weight in `type`.
void floats(Table& t, const char* kernel, int64_t m, int64_t n, int64_t k, bool kn, DType type = DType::f32) {
  const std::string name = std::string(dtype_name(type)) + " " + kernel + (kn ? " kn " : " ") + std::to_string(m) +
                           "x" + std::to_string(n) + "x" + std::to_string(k);
  if (!t.wants(name)) return;
  Instance i;
  i.p.family = Family::matmul;
  i.p.desc = MatmulDesc{false, kn};
  i.p.extent = {1, m, k};
  const bool dots = std::strcmp(kernel, "matmul.lanes") != 0;
  const auto x = i.add(Role::x, {DType::f32, {m, k}}),
             w = i.add(Role::weight, {type, kn ? Shape{k, n} : Shape{n, k}}, Access::read,
                       dots ? Origin::temp : Origin::param),
             y = i.add(Role::out, {DType::f32, {m, n}}, Access::write);
  i.p.parts[0].n = n;
  i.p.parts[0].weights = {w};
  i.output(y);
  i.prepare(kernel);
  const bool small = m * n * k <= 64 * 1024 * 1024 && m > 1 && type == DType::f32;
  float *a = i.data<float>(x), *b = i.data<float>(w), *c = i.data<float>(y);
  t.add(
      name, m == 1 ? "read" : "flop", m == 1 ? static_cast<double>(i.bytes(w)) : 2.0 * static_cast<double>(m * n * k),
      i, !small ? std::function<void()>() : [=] {
        for (int64_t r = 0; r < m; ++r) {
          for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t q = 0; q < k; ++q) sum += a[r * k + q] * b[j * k + q];
            c[r * n + j] = sum;
          }
        }
      });
}

void region(Table& t, int64_t n, bool exp) {  // y = a * b + a, or with an exponential
  const std::string name = std::string("region ") + (exp ? "silu(a) * b " : "a * b + a ") + std::to_string(n);
  if (!t.wants(name)) return;
  Instance i;
  i.p.family = Family::region;
  i.p.desc = RegionDesc{};
  i.p.extent = {n};
  const auto a = i.add(Role::x, {DType::f32, {n}}), b = i.add(Role::x, {DType::f32, {n}}),
             y = i.add(Role::out, {DType::f32, {n}}, Access::write);
  using Kind = ScalarExpr::Kind;
  ScalarExpr& e = i.p.prologue;
  e.loads = {{a, {0, {1}}}, {b, {0, {1}}}};
  e.code = {{Kind::load, ScalarOp::add, DType::f32, 0}, {Kind::load, ScalarOp::add, DType::f32, 1}};
  if (exp)
    e.code.push_back({Kind::op, ScalarOp::silu, DType::f32, 0}),
        e.code.push_back({Kind::op, ScalarOp::mul, DType::f32, 2, 1});
  else
    e.code.push_back({Kind::op, ScalarOp::mul, DType::f32, 0, 1}),
        e.code.push_back({Kind::op, ScalarOp::add, DType::f32, 2, 0});
  i.output(y, 3);
  i.prepare("region");
  const float *pa = i.data<float>(a), *pb = i.data<float>(b);
  float* py = i.data<float>(y);
  t.add(name, "read", 12.0 * static_cast<double>(n), i, [=] {
    if (exp)
      for (int64_t k = 0; k < n; ++k) py[k] = pa[k] / (1 + std::exp(-pa[k])) * pb[k];
    else
      for (int64_t k = 0; k < n; ++k) py[k] = pa[k] * pb[k] + pa[k];
  });
}

void norm(Table& t, int64_t rows, int64_t n, bool blocks) {
  const std::string name =
      std::string("rms norm ") + (blocks ? "to blocks " : "") + std::to_string(rows) + "x" + std::to_string(n);
  if (!t.wants(name)) return;
  Instance i;
  i.p.family = Family::norm;
  i.p.desc = NormDesc{NormKind::rms, 1e-5};
  i.p.extent = {rows, n};
  i.p.parts[0].n = n;
  const auto x = i.add(Role::x, {DType::f32, {rows, n}}), w = i.add(Role::weight, {DType::f32, {n}}),
             y = i.add(Role::out, {DType::f32, {rows, n}}, Access::write);
  i.output(y);
  if (blocks) i.p.operands[y].layout = {&kActInt8, {}};
  i.prepare("norm");
  const float *px = i.data<float>(x), *pw = i.data<float>(w);
  std::vector<float> out(static_cast<size_t>(n));
  t.add(name, "read", (blocks ? 5.25 : 8.0) * static_cast<double>(rows * n), i, [&] {
    for (int64_t r = 0; r < rows; ++r) {
      float sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += px[r * n + k] * px[r * n + k];
      const float s = 1 / std::sqrt(sum / static_cast<float>(n) + 1e-5f);
      for (int64_t k = 0; k < n; ++k) out[static_cast<size_t>(k)] = px[r * n + k] * s * pw[k];
    }
  });
}

// Decode or prefill of one sequence at SmolLM2-135M's shape: 9 heads, 3 of keys, 64 wide, pages of 32. Decode is
// bound by the bytes of the keys and values, prefill by its products.
void attention(Table& t, KvKind kv, int64_t tokens, int64_t keys) {
  const std::string name = "attention " + std::string(kv_kind_name(kv)) + " " + std::to_string(tokens) + " tokens, " +
                           std::to_string(keys) + " keys";
  if (!t.wants(name)) return;
  Instance i;
  i.p.family = Family::attention;
  AttentionDesc d;
  d.heads = 9, d.kv_heads = 3, d.head_size = d.value_size = 64, d.page = 32, d.scale = 0.125, d.kv = kv;
  i.p.desc = d;
  i.p.extent = {tokens, 1};
  const int64_t pages = keys / 32;
  const auto state = [&](bool is_key) {
    TensorType type = *kv_state_type(kv, is_key, pages, 3, 64, 32);
    int64_t rest = 1;
    for (size_t a = 1; a < type.shape.size(); ++a) rest *= *type.shape[a].constant();
    type.shape = {pages, rest};
    return type;
  };
  i.add(Role::q, {DType::f32, {tokens, 9, 64}});
  i.add(Role::k, state(true), Access::read, Origin::state);
  i.add(Role::v, state(false), Access::read, Origin::state);
  const auto start = i.add(Role::row_start, {DType::i32, {2}}), length = i.add(Role::kv_length, {DType::i32, {1}}),
             table = i.add(Role::pages, {DType::i32, {1, pages}}),
             position = i.add(Role::position, {DType::i32, {tokens}});
  const auto y = i.add(Role::out, {DType::f32, {tokens, 9, 64}}, Access::write);
  i.output(y);
  i.prepare("attention");
  i.data<int32_t>(start)[0] = 0, i.data<int32_t>(start)[1] = static_cast<int32_t>(tokens),
  i.data<int32_t>(length)[0] = static_cast<int32_t>(keys);
  for (int64_t p = 0; p < pages; ++p) i.data<int32_t>(table)[p] = static_cast<int32_t>(pages - 1 - p);
  double pairs = 0;
  for (int64_t q = 0; q < tokens; ++q)
    i.data<int32_t>(position)[q] = static_cast<int32_t>(keys - tokens + q),
    pairs += static_cast<double>(keys - tokens + q + 1);
  if (tokens == 1)
    t.add(name, "read", static_cast<double>(2 * keys * kv_token_bytes(kv, 3, 64)), i, {});
  else
    t.add(name, "flop", pairs * 9 * 64 * 4, i, {});
}

void sample(Table& t, int64_t vocabulary, bool greedy) {
  const std::string name = std::string("sample ") + (greedy ? "greedy " : "top-k top-p ") + std::to_string(vocabulary);
  if (!t.wants(name)) return;
  Instance i;
  i.p.family = Family::sample;
  i.p.desc = SampleDesc{};
  i.p.extent = {1, vocabulary, 64};
  const auto x = i.add(Role::x, {DType::f32, {1, vocabulary}}), s = i.add(Role::settings, {DType::f32, {1, 8}}),
             h = i.add(Role::history, {DType::i32, {1, 64}});
  i.add(Role::seeds, {DType::u32, {1, 4}});
  const auto y = i.add(Role::out, {DType::i32, {1}}, Access::write);
  i.output(y);
  i.prepare("sample");
  for (int64_t k = 0; k < vocabulary; ++k) i.data<float>(x)[k] = static_cast<float>((k * 7919) % 10007) * 0.001f;
  for (int k = 0; k < 64; ++k) i.data<int32_t>(h)[k] = -1;
  const float settings[8] = {greedy ? 0.f : 0.8f, 40, 0.95f, 0, 1, 0, 0, 0};
  std::copy(settings, settings + 8, i.data<float>(s));
  t.add(name, "read", 4.0 * static_cast<double>(vocabulary), i, {});
}

int run(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--json"))
      o.json = true;
    else if (!std::strcmp(argv[i], "--assembly"))
      show_assembly = true;
    else if (!std::strcmp(argv[i], "--only") && i + 1 < argc)
      o.only = argv[++i];
    else
      return std::fprintf(stderr, "usage: bench_kernels [--json] [--only text] [--assembly]\n"), 2;
  }
  const bool assembly = std::exchange(show_assembly, false);
  const Roofs roofs = measure_roofs();
  show_assembly = assembly;
  if (!o.json)
    std::printf("one thread, %s: read %.1f GB/s, f32 %.1f GFLOP/s, dot4 %.1f GOP/s\n", host_caps().isa.c_str(),
                roofs.read * 1e-9, roofs.flop * 1e-9, roofs.int8 * 1e-9);
  Table t(roofs, o);
  const char* const kFormats[] = {"q4_1", "q4_0", "q8_0", "q5_0",  "q5_1", "q6_k", "q5_k",
                                  "q4_k", "q3_k", "q2_k", "tq2_0", "q2_0", "q1_0", "iq4_nl"};
  for (const char* f : kFormats) packed(t, f, 1, 65536, 4096 / 2);
  packed(t, "q4_1", 1, 49152, 576);
  packed(t, "q4_1", 1, 1536, 576);
  packed(t, "q4_1", 1, 576, 1536);
  for (const char* f : {"q4_1", "q4_0", "q8_0"}) packed(t, f, 512, 1536, 576);
  packed(t, "q4_1", 512, 576, 1536);
  packed(t, "q4_1", 512, 576, 1536, false, true);
  packed(t, "q4_1", 512, 576, 576);
  for (const char* f : kFormats) packed(t, f, 512, 1024, 1024);
  packed(t, "q8_0", 1024, 1024, 1024);
  packed(t, "q4_1", 4, 1536, 576);
  packed(t, "q4_1", 1, 8192, 2048, true);
  packed(t, "q4_1", 512, 1024, 1024, true);
  floats(t, "matmul.lanes", 1, 16384, 2048, false);
  for (const DType type : {DType::f32, DType::f16, DType::bf16})
    floats(t, "matmul.lanes", 1024, 1024, 1024, false, type);
  floats(t, "matmul.lanes", 1024, 1024, 1024, true);
  floats(t, "matmul.dots", 1024, 1024, 1024, false);
  floats(t, "matmul.staged", 1024, 1024, 1024, true);
  floats(t, "matmul.staged", 1024, 1024, 1024, false);
  floats(t, "matmul.staged", 512, 512, 64, false);
  floats(t, "matmul.dots", 512, 512, 64, false);
  floats(t, "matmul.lanes", 256, 256, 256, false);
  region(t, 1 << 24, false);
  region(t, 1 << 24, true);
  region(t, 1 << 14, false);
  norm(t, 512, 576, false);
  norm(t, 512, 576, true);
  for (const KvKind kv : kKvKinds) {
    attention(t, kv, 1, 512);
    attention(t, kv, 1, 4096);
    attention(t, kv, 1, 65536);
    attention(t, kv, 256, 512);
  }
  attention(t, KvKind::f16, 256, 4096);
  sample(t, 49152, true);
  sample(t, 49152, false);
  t.finish();
  return 0;
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) { return tern::bench::run(argc, argv); }
