#include "graphs.h"

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "machine.h"
#include "tern/ops/attention.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/norm.h"
#include "tern/ops/reduce.h"
#include "tern/ops/sample.h"
#include "tern/ops/shape.h"

namespace tern::test {

Graph passed(Builder& b) {
  auto g = b.finish();
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.error().message());
  if (!g) return Graph();
  const Caps caps;
  const TakesCtx ctx{plain_candidates(), &caps, {}};
  const Target target{&caps, &ctx, takes};
  const auto done = run_passes(*g, target, default_passes());
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message());
  return std::move(*g);
}

Graph mlp() {
  Builder b;
  const Dim n = b.symbol("B", 1, 64);
  const Value x = b.input("x", DType::f32, {n, 64});
  const Value h = gelu_tanh(b, linear(b, x, b.param("w1", DType::f32, {96, 64}), b.param("b1", DType::f32, {96})));
  const Value y = linear(b, h, b.param("w2", DType::f32, {32, 96}), b.param("b2", DType::f32, {32}));
  b.output("y", add(b, y, slice(b, x, 1, 0, 32)));
  return passed(b);
}

namespace {

struct Step {
  Value position, slot, row_start, kv_length, pages;
  Dim t;
};

Value attention_block(Builder& b, Value x, const Step& step, const std::string& p) {
  const Format* q4 = format_by_name("q4_0");
  const Value h = rms_norm(b, x, b.param(p + "attn_norm", DType::f32, {96}), 1e-5);
  const auto heads = [&](const char* name, int64_t n) {
    return reshape(b, linear(b, h, b.param(p + name, DType::f32, {n * 32, 96}, q4)), {step.t, n, 32});
  };
  RopeOptions turn;
  const Value q = rope(b, heads("q", 3), step.position, turn), k = rope(b, heads("k", 1), step.position, turn),
              v = heads("v", 1);
  PagedKv kv;
  const auto stored = [&](const std::string& name, Value rows, bool keys) {
    return store_kv(b, kv_state(b, name, kv.kind, keys, 16, 1, 32, 16), step.slot, rows, kv.kind, keys, 16);
  };
  kv.k_state = stored(p + "k_cache", k, true);
  kv.v_state = stored(p + "v_cache", v, false);
  b.update(p + "k_cache", kv.k_state);
  b.update(p + "v_cache", kv.v_state);
  kv.row_start = step.row_start, kv.kv_length = step.kv_length, kv.pages = step.pages, kv.position = step.position,
  kv.page = 16;
  const Value a = attention(b, q, kv, {.scale = 0.17});
  return add(b, x, linear(b, reshape(b, a, {step.t, 96}), b.param(p + "o", DType::f32, {96, 96}, q4)));
}

Value feed_forward(Builder& b, Value x, const std::string& p) {
  const Format* q4 = format_by_name("q4_0");
  const Value h = rms_norm(b, x, b.param(p + "ffn_norm", DType::f32, {96}), 1e-5);
  const Value gate = linear(b, h, b.param(p + "gate", DType::f32, {256, 96}, q4)),
              up = linear(b, h, b.param(p + "up", DType::f32, {256, 96}, q4));
  return add(b, x, linear(b, swiglu(b, gate, up), b.param(p + "down", DType::f32, {96, 256}, q4)));
}

}  // namespace

Graph llama(int layers) {
  Builder b;
  const Dim t = b.symbol("T", 1, 512), l = b.symbol("L", 0, 512), s = b.symbol("S", 1, 16),
            pages = b.symbol("P", 1, 16);
  const auto ints = [&](const char* name, Shape shape) { return b.input(name, DType::i32, std::move(shape)); };
  const Value ids = ints("ids", {t}), rows = ints("rows", {l});
  Step step{ints("position", {t}),  ints("slot", {t}),         ints("row_start", {b.dims().add(s, 1)}),
            ints("kv_length", {s}), ints("pages", {s, pages}), t};
  const Value table = b.param("embd", DType::f32, {320, 96}, format_by_name("q8_0"));
  Value x = embedding(b, table, ids);
  for (int i = 0; i < layers; ++i) {
    const std::string p = "blk." + std::to_string(i) + ".";
    b.scope("blk." + std::to_string(i));
    x = feed_forward(b, attention_block(b, x, step, p), p);
  }
  b.scope("");
  const Value last = gather(b, rms_norm(b, x, b.param("norm", DType::f32, {96}), 1e-5), rows);
  const Value logits = linear(b, last, table);
  b.output("logits", logits);
  b.output("next", sample(b, logits, b.input("settings", DType::f32, {l, 8}), b.input("history", DType::i32, {l, 64}),
                          b.input("seeds", DType::u32, {l, 4})));
  return passed(b);
}

Graph reductions() {
  Builder b;
  const Dim n = b.symbol("B", 1, 16);
  const Value x = b.input("x", DType::f32, {n, 6, 10}), m = b.input("m", DType::boolean, {n, 10});
  // A masked softmax over the last axis, then its entropy.
  const Value s = select(b, broadcast(b, m, {n, 6, 10}, {0, 2}), mul(b, x, 0.5), b.constant(DType::f32, -1e30));
  const Value p = softmax(b, s, -1);
  b.output("entropy", neg(b, reduce_sum(b, mul(b, p, log(b, add(b, p, 1e-9))), {-1})));
  // Over a middle axis: takes no kernel as it stands.
  b.output("middle", softmax(b, x, 1));
  b.output("spread", sqrt(b, sub(b, mean(b, mul(b, x, x), {0, 2}), mul(b, mean(b, x, {0, 2}), mean(b, x, {0, 2})))));
  b.output("where", argmax(b, x, -1));
  b.output("normed",
           mul(b, layer_norm(b, x, b.param("w", DType::f32, {10}), b.param("bias", DType::f32, {10}), 1e-5), x));
  return passed(b);
}

Graph concat_pad() {
  Builder b;
  const Dim n = b.symbol("B", 1, 16);
  const Value x = b.input("x", DType::f32, {n, 4}), y = b.input("y", DType::f32, {n, 3});
  b.output("c", concat(b, {x, exp(b, y), add(b, x, 1)}, 1));
  const std::vector<int64_t> apart = {0, 1};
  b.output("p", b.op("pad", {mul(b, x, 2), b.constant(DType::f32, 7)}, {Shape{1, 0}, Shape{0, 2}, apart}));
  b.output("cut", b.op("pad", {y, b.constant(DType::f32, -1)}, {Shape{0, -1}, Shape{2, 1}, std::vector<int64_t>{}}));
  return passed(b);
}

Graph negative_steps() {
  Builder b;
  const Dim n = b.symbol("B", 2, 16);
  const Value x = b.input("x", DType::f32, {n, 9});
  const auto cut = [&](Value v, Shape from, Shape to, std::vector<int64_t> step) {
    return b.op("slice", {v}, {std::move(from), std::move(to), std::move(step)});
  };
  const Value back = cut(x, {b.dims().sub(n, 1), 8}, {-1, 0}, {-1, -2});  // [n, 4]: columns 8 6 4 2
  b.output("back", add(b, back, cut(x, {0, 0}, {n, 8}, {1, 2})));
  // A reshape of what runs backwards does not compose: the slice is stored first.
  b.output("flat", mul(b, reshape(b, back, {b.dims().mul(n, 4)}), 3));
  b.output("turned", transpose(b, back, {1, 0}));
  b.output("count", add(b, cut(iota(b, {9}, 0), {8}, {-1}, {-2}), cast(b, dim_value(b, n), DType::i32)));
  return passed(b);
}

Graph states() {
  Builder b;
  const Value x = b.input("x", DType::f32, {2, 4}), i = b.input("i", DType::i32, {2});
  const Value log = b.state("log", DType::f32, {8, 4}), a = b.state("a", DType::f32, {2, 4}),
              c = b.state("c", DType::f32, {2, 4}), h = b.state("h", DType::f32, {2, 4});
  b.update("log", store_rows(b, store_rows(b, log, i, x), i, mul(b, x, 2)));
  b.output("old_log", log);
  b.output("sum", reduce_sum(b, log, {0}));
  b.update("a", c);  // exchanged
  b.update("c", a);
  const Value next = tanh(b, linear(b, h, b.param("w", DType::f32, {4, 4})));
  b.update("h", next);
  b.output("h_out", next);
  b.output("x_again", x);
  return passed(b);
}

}  // namespace tern::test
