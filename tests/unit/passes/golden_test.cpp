// A layer of a llama against tests/golden/graph: as built, as passes leave it for a device that takes every composite,
// and for one that takes none. TERN_UPDATE_GOLDEN=1 in the environment rewrites the files; review the diff.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <sstream>

#include "rewrites.h"
#include "tern/ops/attention.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/norm.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

void expect_golden(const std::string& got, const std::string& name) {
  const std::string path = std::string(TERN_TEST_GOLDEN) + "/graph/" + name + ".txt";
  if (std::getenv("TERN_UPDATE_GOLDEN")) {
    std::ofstream(path) << got;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path << ": run with TERN_UPDATE_GOLDEN=1 to make it";
  std::stringstream want;
  want << file.rdbuf();
  EXPECT_EQ(got, want.str()) << path;
}

// As a model file would write it: shapes of SmolLM2 135M.
Graph llama(int layers) {
  constexpr int64_t kHidden = 576, kHeads = 9, kKvHeads = 3, kHead = 64, kInner = 1536, kVocabulary = 1024;
  Builder b;
  const Format* q4 = format_by_name("q4_1");
  const Dim T = b.symbol("T", 1, 512), S = b.symbol("S", 1, 8), P = b.symbol("P", 1, 64), L = b.symbol("L", 0, 512);
  const Value ids = b.input("ids", DType::i32, {T}), position = b.input("position", DType::i32, {T}),
              slot = b.input("slot", DType::i32, {T}),
              row_start = b.input("row_start", DType::i32, {b.dims().add(S, 1)}),
              kv_length = b.input("kv_length", DType::i32, {S}), pages = b.input("pages", DType::i32, {S, P}),
              rows = b.input("rows", DType::i32, {L});
  const Value table = b.param("token_embd", DType::f32, {kVocabulary, kHidden}, q4);
  Value x = gather(b, table, ids);
  for (int layer = 0; layer < layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer);
    b.scope(prefix);
    auto weight = [&](const char* name, int64_t n, int64_t k) {
      return b.param(prefix + "." + name, DType::f32, {n, k}, q4);
    };
    Value h = rms_norm(b, x, b.param(prefix + ".attn_norm", DType::f32, {kHidden}), 1e-5);
    auto heads = [&](Value v, int64_t n) { return reshape(b, v, {T, n, kHead}); };
    const RopeOptions options{.base = 100000};
    const Value q = rope(b, heads(linear(b, h, weight("attn_q", kHeads * kHead, kHidden)), kHeads), position, options),
                k = rope(b, heads(linear(b, h, weight("attn_k", kKvHeads * kHead, kHidden)), kKvHeads), position,
                         options),
                v = heads(linear(b, h, weight("attn_v", kKvHeads * kHead, kHidden)), kKvHeads);
    PagedKv kv{kv_state(b, prefix + ".k", KvKind::f16, true, 256, kKvHeads, kHead, 16),
               kv_state(b, prefix + ".v", KvKind::f16, false, 256, kKvHeads, kHead, 16),
               row_start,
               kv_length,
               pages,
               position,
               16};
    kv.k_state = store_kv(b, kv.k_state, slot, cast(b, k, DType::f16), kv.kind, true, kv.page);
    kv.v_state = store_kv(b, kv.v_state, slot, cast(b, v, DType::f16), kv.kind, false, kv.page);
    b.update(prefix + ".k", kv.k_state);
    b.update(prefix + ".v", kv.v_state);
    const Value a = attention(b, q, kv, {.scale = 1 / std::sqrt(static_cast<double>(kHead))});
    x = add(b, x, linear(b, reshape(b, a, {T, kHeads * kHead}), weight("attn_output", kHidden, kHeads * kHead)));
    h = rms_norm(b, x, b.param(prefix + ".ffn_norm", DType::f32, {kHidden}), 1e-5);
    const Value gate = linear(b, h, weight("ffn_gate", kInner, kHidden));
    const Value up = linear(b, h, weight("ffn_up", kInner, kHidden));
    x = add(b, x, linear(b, swiglu(b, gate, up), weight("ffn_down", kHidden, kInner)));
  }
  b.scope("output");
  x = rms_norm(b, gather(b, x, rows), b.param("output_norm", DType::f32, {kHidden}), 1e-5);
  b.output("logits", linear(b, x, table));
  auto g = b.finish();
  EXPECT_TRUE(g.ok()) << g.error().message();
  return g.ok() ? std::move(*g) : Graph();
}

OrRefuse<Bid> takes_all(const void*, const Graph&, Value) { return Bid{}; }

Graph passed(Graph g, const Target& target) {
  PassOptions options;
  options.verify = true;
  auto timings = run_passes(g, target, default_passes(), options);
  EXPECT_TRUE(timings.ok()) << timings.error().message();
  return g;
}

TEST(Golden, LlamaLayer) {
  const Graph g = llama(1);
  expect_golden(print(g), "llama_layer");
  auto again = parse_graph(print(g));
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(print(*again), print(g));
  expect_golden(print(passed(g.clone(), {nullptr, nullptr, takes_all})), "llama_layer_passed");
  const Graph parts = passed(g.clone(), {});
  for (uint32_t id : parts.order()) EXPECT_NE(parts.node(id).op->kind, OpKind::composite) << parts.node(id).op->name;
  expect_golden(print(parts), "llama_layer_decomposed");
}

// A text by hand, also a seed of the fuzzer: it must say exactly what the printer says.
TEST(Golden, Shapes) {
  std::ifstream file(std::string(TERN_TEST_GOLDEN) + "/graph/shapes.txt");
  std::stringstream text;
  text << file.rdbuf();
  auto g = parse_graph(text.str());
  ASSERT_TRUE(g.ok()) << g.error().message();
  EXPECT_EQ(print(*g), text.str());
}

// Not a gate of time, only of growth: four times the layers must not cost sixteen times as much. The least processor
// time of some runs, so that what else the machine does is not counted.
TEST(Golden, CostGrowsWithTheModel) {
  auto seconds = [](int layers) {
    std::clock_t least = std::numeric_limits<std::clock_t>::max();
    for (int run = 0; run < 5; ++run) {
      const std::clock_t start = std::clock();
      Graph g = passed(llama(layers), {nullptr, nullptr, takes_all});
      auto again = parse_graph(print(g));
      EXPECT_TRUE(again.ok());
      least = std::min(least, std::clock() - start);
    }
    return static_cast<double>(least) / CLOCKS_PER_SEC;
  };
  const double small = seconds(8), large = seconds(32);
  std::printf("build, passes with verifier, print and parse: 8 layers %.1f ms, 32 layers %.1f ms\n", small * 1e3,
              large * 1e3);
  EXPECT_LT(large, 12 * small);
}

}  // namespace
}  // namespace tern
