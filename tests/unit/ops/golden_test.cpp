// Every op against expectations computed elsewhere (tests/data/tools/ops_goldens.py); composites also through their
// decomposition.
#include <fstream>
#include <nlohmann/json.hpp>

#include "run.h"

namespace tern {
namespace {

using In = std::map<std::string, Value>;
using Make = Value (*)(Builder&, In&);

RopeOptions rope_like(RopeOptions::Pairing pairing, RopeOptions::Scale scale = RopeOptions::Scale::none,
                      double factor = 1) {
  RopeOptions o;
  o.pairing = pairing;
  o.scale = scale;
  o.factor = factor;
  return o;
}

Value paged(Builder& b, In& in, AttentionOptions o) {
  o.scale = 0.3;
  const PagedKv kv{in["k"], in["v"], in["row_start"], in["kv_length"], in["pages"], in["position"], 2, KvKind::f32};
  return attention(b, in["q"], kv, o, in["mask"], in["sinks"]);
}
Value dense(Builder& b, In& in, AttentionOptions o, int64_t offset) {
  o.scale = 0.375;
  return dense_attention(b, in["q"], in["k"], in["v"], o, offset, in["mask"], in["sinks"]);
}

using P = RopeOptions::Pairing;
using S = RopeOptions::Scale;

const std::map<std::string, Make> kMakers = {
    {"slice/step-3", [](Builder& b, In& in) { return slice(b, in["x"], 1, 10, 0, -3); }},
    {"slice/past-front",
     [](Builder& b, In& in) { return slice(b, slice(b, in["x"], 0, 1, kToEnd), 1, -1, kToEnd, -2); }},
    {"slice/empty", [](Builder& b, In& in) { return slice(b, in["x"], 1, 7, 2); }},
    {"slice/negative-bounds", [](Builder& b, In& in) { return slice(b, in["x"], -1, -5, -1, 2); }},
    {"reverse", [](Builder& b, In& in) { return reverse(b, in["x"], {1, -1}); }},
    {"transpose", [](Builder& b, In& in) { return transpose(b, in["x"], {2, 0, 1}); }},
    {"broadcast", [](Builder& b, In& in) { return broadcast_to(b, in["x"], {2, 3, 4}); }},
    {"concat", [](Builder& b, In& in) { return concat(b, {in["a"], in["b"], in["c"]}, 1); }},
    {"pad", [](Builder& b, In& in) { return pad(b, in["x"], {1, 2}, {0, -1}, 9.0, {0, 1}); }},
    {"pad/i64",
     [](Builder& b, In& in) {
       const Value one = b.constant(DType::i64, 1);
       return pad(b, in["x"], {1}, {2}, add(b, b.constant(DType::i64, 0x1p62), one));
     }},
    {"reduce/sum", [](Builder& b, In& in) { return reduce_sum(b, in["x"], {0, 2}); }},
    {"reduce/prod", [](Builder& b, In& in) { return reduce_prod(b, in["x"], {1}, true); }},
    {"reduce/max", [](Builder& b, In& in) { return reduce_max(b, in["x"], {-1}); }},
    {"reduce/min", [](Builder& b, In& in) { return reduce_min(b, in["x"]); }},
    {"mean", [](Builder& b, In& in) { return mean(b, in["x"], {1, 2}); }},
    {"reduce/sum-i32", [](Builder& b, In& in) { return reduce_sum(b, in["x"], {0}); }},
    {"reduce/prod-i32", [](Builder& b, In& in) { return reduce_prod(b, in["x"], {1}); }},
    {"reduce/max-u64", [](Builder& b, In& in) { return reduce_max(b, in["x"], {1}); }},
    {"reduce/empty-max", [](Builder& b, In& in) { return reduce_max(b, in["x"], {1}); }},
    {"reduce/empty-min-i16", [](Builder& b, In& in) { return reduce_min(b, in["x"], {1}); }},
    {"reduce/empty-prod", [](Builder& b, In& in) { return reduce_prod(b, in["x"], {1}); }},
    {"reduce/any", [](Builder& b, In& in) { return reduce_any(b, in["x"], {0}); }},
    {"reduce/all", [](Builder& b, In& in) { return reduce_all(b, in["x"], {1}); }},
    {"argmax", [](Builder& b, In& in) { return argmax(b, in["x"], 1); }},
    {"argmin", [](Builder& b, In& in) { return argmin(b, in["x"], 0, true, DType::i64); }},
    {"matmul/batch", [](Builder& b, In& in) { return matmul(b, in["a"], in["b"]); }},
    {"matmul/one-matrix", [](Builder& b, In& in) { return matmul(b, in["a"], in["b"]); }},
    {"matmul/leading", [](Builder& b, In& in) { return matmul(b, in["a"], in["b"]); }},
    {"matmul/vector", [](Builder& b, In& in) { return matmul(b, in["a"], in["b"]); }},
    {"dot_general", [](Builder& b, In& in) { return dot_general(b, in["a"], in["b"], {{2, 3}, {0, 3}, {0}, {2}}); }},
    {"dot_general/i8-u8", [](Builder& b, In& in) { return dot_general(b, in["a"], in["b"], {{1}, {1}, {}, {}}); }},
    {"linear", [](Builder& b, In& in) { return linear(b, in["x"], in["w"], in["bias"]); }},
    {"gather", [](Builder& b, In& in) { return embedding(b, in["data"], in["index"]); }},
    {"gather/axis1", [](Builder& b, In& in) { return gather(b, in["data"], in["index"], 1); }},
    {"gather/outside", [](Builder& b, In& in) { return gather(b, in["data"], in["index"]); }},
    {"store_rows", [](Builder& b, In& in) { return store_rows(b, in["state"], in["index"], in["src"]); }},
    {"softmax", [](Builder& b, In& in) { return softmax(b, in["x"], 1); }},
    {"log_softmax", [](Builder& b, In& in) { return log_softmax(b, in["x"]); }},
    {"softmax/large", [](Builder& b, In& in) { return softmax(b, in["x"]); }},
    {"rms_norm", [](Builder& b, In& in) { return rms_norm(b, in["x"], in["w"], 1e-3); }},
    {"rms_norm/plain", [](Builder& b, In& in) { return rms_norm(b, in["x"], {}, 1e-3); }},
    {"layer_norm", [](Builder& b, In& in) { return layer_norm(b, in["x"], in["w"], in["bias"], 1e-5); }},
    {"rope/neighbour", [](Builder& b, In& in) { return rope(b, in["x"], in["position"], rope_like(P::neighbour)); }},
    {"rope/halves-partial",
     [](Builder& b, In& in) {
       RopeOptions o = rope_like(P::halves);
       o.rotary = 6;
       o.base = 500;
       return rope(b, in["x"], in["position"], o);
     }},
    {"rope/linear",
     [](Builder& b, In& in) { return rope(b, in["x"], in["position"], rope_like(P::halves, S::linear, 4)); }},
    {"rope/negative", [](Builder& b, In& in) { return rope(b, in["x"], in["position"], rope_like(P::halves)); }},
    {"rope/factors",
     [](Builder& b, In& in) { return rope(b, in["x"], in["position"], rope_like(P::halves), in["factors"]); }},
    {"rope/llama3",
     [](Builder& b, In& in) {
       RopeOptions o = rope_like(P::halves, S::llama3, 8);
       o.base = 50000;
       o.original_context = 512;
       return rope(b, in["x"], in["position"], o);
     }},
    {"rope/yarn",
     [](Builder& b, In& in) {
       RopeOptions o = rope_like(P::neighbour, S::yarn, 4);
       o.original_context = 256;
       o.attention_factor = 0.1 * std::log(4.0) + 1;
       return rope(b, in["x"], in["position"], o);
     }},
    {"dense_attention/causal", [](Builder& b, In& in) { return dense(b, in, {}, 1); }},
    {"dense_attention/window-cap", [](Builder& b, In& in) { return dense(b, in, {.window = 2, .soft_cap = 1.5}, 1); }},
    {"dense_attention/bool-mask", [](Builder& b, In& in) { return dense(b, in, {.causal = false}, 0); }},
    {"dense_attention/float-mask-sinks", [](Builder& b, In& in) { return dense(b, in, {}, 1); }},
    {"dense_attention/unseen", [](Builder& b, In& in) { return dense(b, in, {.window = 3}, 7); }},
    {"attention/causal", [](Builder& b, In& in) { return paged(b, in, {}); }},
    {"attention/window-cap", [](Builder& b, In& in) { return paged(b, in, {.window = 2, .soft_cap = 0.7}); }},
    {"attention/all", [](Builder& b, In& in) { return paged(b, in, {.causal = false}); }},
    {"attention/mask-sinks", [](Builder& b, In& in) { return paged(b, in, {}); }},
    {"sample", [](Builder& b, In& in) { return sample(b, in["logits"], in["settings"], in["history"], in["seeds"]); }},
};

RefTensor tensor_of(const nlohmann::json& j) {
  RefTensor t = ref_zeros(*dtype_from_name(j["dtype"].get<std::string>()), j["shape"].get<std::vector<int64_t>>());
  size_t n = 0;
  for (const auto& v : j["data"]) {
    if (t.f.empty())
      t.i[n++] = v.get<int64_t>();
    else if (v.is_string())
      t.f[n++] = v == "nan" ? kNan : v == "inf" ? kInf : -kInf;
    else
      t.f[n++] = v.get<double>();
  }
  EXPECT_EQ(n, t.f.size() + t.i.size());
  return t;
}

// The goldens' keys and values are [slots, heads, size]; f32 states of pages of 2 hold keys as [pages, heads, size, 2,
// 1] and values as [pages, heads, 2, size].
RefTensor in_pages(const RefTensor& rows, bool keys) {
  const int64_t heads = rows.shape[1], size = rows.shape[2], pages = rows.shape[0] / 2;
  EXPECT_EQ(rows.dtype, DType::f32);
  std::vector<int64_t> shape = {pages, heads};
  for (const int64_t n : keys ? std::vector<int64_t>{size, 2, 1} : std::vector<int64_t>{2, size}) shape.push_back(n);
  RefTensor out = ref_zeros(rows.dtype, shape);
  for (int64_t slot = 0; slot < 2 * pages; ++slot) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t c = 0; c < size; ++c) {
        const int64_t head = (slot / 2 * heads + h) * 2 * size, at = keys ? c * 2 + slot % 2 : slot % 2 * size + c;
        out.f[static_cast<size_t>(head + at)] = rows.f[static_cast<size_t>((slot * heads + h) * size + c)];
      }
    }
  }
  return out;
}

void compare(const RefTensor& got, const RefTensor& want, double tolerance) {
  EXPECT_EQ(got.dtype, want.dtype);
  EXPECT_EQ(got.shape, want.shape);
  EXPECT_EQ(got.i, want.i);
  expect_close(Result<RefTensor>(got), want.shape, want.f, tolerance);
}

bool is_param(const std::string& name, const std::string& op) {
  return op.starts_with("attention") && (name == "k" || name == "v");
}

TEST(OpGoldens, All) {
  std::ifstream file(TERN_TEST_DATA "/ops/goldens.json");
  ASSERT_TRUE(file.good());
  const auto doc = nlohmann::json::parse(file);
  std::set<std::string> seen;
  for (const auto& c : doc["cases"]) {
    const std::string name = c["name"];
    SCOPED_TRACE(name);
    seen.insert(name);
    const auto make = kMakers.find(name);
    ASSERT_NE(make, kMakers.end());
    Leaves leaves;
    Builder b;
    In in;
    for (const auto& [key, value] : c["inputs"].items()) {
      RefTensor t = tensor_of(value);
      if (is_param(key, name)) t = in_pages(t, key == "k");
      const Shape shape(t.shape.begin(), t.shape.end());
      in[key] = is_param(key, name) ? b.state(key, t.dtype, shape) : b.input(key, t.dtype, shape);
      leaves[key] = std::move(t);
    }
    b.output("y", make->second(b, in));
    auto g = b.finish();
    ASSERT_TRUE(g.ok()) << g.error().message();
    const RefTensor want = tensor_of(c["out"]);
    auto r = evaluate(*g, leaves, {});
    ASSERT_TRUE(r.ok()) << r.error().message();
    compare(r->outputs.at("y"), want, c["tol"]);
    if (decompose_all(*g) == 0) continue;
    g->compact();
    auto valid = g->verify();
    ASSERT_TRUE(valid.ok()) << valid.error().message();
    r = evaluate(*g, leaves, {});
    ASSERT_TRUE(r.ok()) << r.error().message();
    compare(r->outputs.at("y"), want, c["loose"]);
  }
  EXPECT_EQ(seen.size(), kMakers.size());
}

}  // namespace
}  // namespace tern
