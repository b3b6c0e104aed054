// A whole language model from a file, written down with the builder functions, against logits that somebody else
// computed (tests/data/gguf/manifest.json: f64 arithmetic on the decoded weights); then its decomposition.
#include <fstream>
#include <nlohmann/json.hpp>

#include "run.h"
#include "tern/import/model_file.h"

namespace tern {
namespace {

struct Llama {
  const ModelFile& file;
  Builder b;
  int64_t heads, kv_heads;
  Dim tokens;
  PagedKv kv;
  Value slot;

  Value weight(const std::string& name) {
    const WeightInfo* w = file.find(name);
    EXPECT_TRUE(w) << name;
    return b.param(name, w->type.dtype, w->type.shape, w->type.format);
  }
  Value stored(const std::string& name, int64_t size, Value rows, bool keys) {
    const Value s = kv_state(b, name, kv.kind, keys, 4, kv_heads, size, kv.page);
    const Value next = store_kv(b, s, slot, rows, kv.kind, keys, kv.page);
    b.update(name, next);
    return next;
  }
  Value block(int layer, Value x) {
    const std::string p = "blk." + std::to_string(layer) + ".";
    const auto w = [&](const char* name) { return weight(p + name + ".weight"); };
    const int64_t size = *b.dim(x, 1).constant() / heads;
    Value n = rms_norm(b, x, w("attn_norm"), 1e-5);
    const auto split = [&](Value v, int64_t count) { return reshape(b, v, {tokens, count, size}); };
    const Value q = rope(b, split(linear(b, n, w("attn_q")), heads), kv.position, {});
    const Value k = rope(b, split(linear(b, n, w("attn_k")), kv_heads), kv.position, {});
    kv.k_state = stored(p + "k", size, k, true);
    kv.v_state = stored(p + "v", size, split(linear(b, n, w("attn_v")), kv_heads), false);
    const Value a = attention(b, q, kv, {.scale = 1 / std::sqrt(static_cast<double>(size))});
    x = add(b, x, linear(b, reshape(b, a, {tokens, heads * size}), w("attn_output")));
    n = rms_norm(b, x, w("ffn_norm"), 1e-5);
    return add(b, x, linear(b, swiglu(b, linear(b, n, w("ffn_gate")), linear(b, n, w("ffn_up"))), w("ffn_down")));
  }
  Result<Graph> build(int layers) {
    tokens = b.symbol("T", 1, 16);
    slot = kv.position = b.input("position", DType::i32, {tokens});
    kv.row_start = b.input("row_start", DType::i32, {2});
    kv.kv_length = b.input("kv_length", DType::i32, {1});
    kv.pages = b.input("pages", DType::i32, {1, 4});
    kv.page = 4;
    kv.kind = KvKind::f32;
    const Value table = weight("token_embd.weight");
    Value x = embedding(b, table, b.input("ids", DType::i32, {tokens}));
    for (int l = 0; l < layers; ++l) x = block(l, x);
    x = rms_norm(b, x, weight("output_norm.weight"), 1e-5);
    const bool tied = !file.find("output.weight");
    b.output("logits",
             linear(b, gather(b, x, b.input("rows", DType::i32, {1})), tied ? table : weight("output.weight")));
    return b.finish();
  }
};

class Stepper {
 public:
  Stepper(const ModelFile& file, const Graph& g) : file_(file), g_(g) {
    for (const Port& p : g.ports()) {
      std::vector<int64_t> shape;
      if (p.kind != PortKind::state) continue;
      for (Dim d : g.type(p.value).shape) shape.push_back(*d.constant());
      leaves_[p.name] = ref_zeros(DType::f32, shape);
    }
  }
  RefTensor step(const std::vector<int64_t>& ids) {
    const auto n = static_cast<int64_t>(ids.size());
    std::vector<int64_t> position(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) position[i] = past_ + static_cast<int64_t>(i);
    past_ += n;
    leaves_["ids"] = whole({n}, ids);
    leaves_["position"] = whole({n}, position);
    leaves_["row_start"] = whole({2}, {0, n});
    leaves_["kv_length"] = whole({1}, {past_});
    leaves_["pages"] = whole({1, 4}, {0, 1, 2, 3});
    leaves_["rows"] = whole({1}, {n - 1});
    RefOptions o;
    o.leaf = [&](const Port& p) -> Result<RefLeaf> {
      const WeightInfo& w = *file_.find(p.name);
      TERN_TRY(const Planes planes, file_.planes(w));
      std::vector<int64_t> shape;
      for (Dim d : w.type.shape) shape.push_back(*d.constant());
      return RefLeaf(TensorView{w.type.dtype, shape, planes.p[0], w.type.format});
    };
    auto r = evaluate(g_, leaves_, *bind_symbols(g_, leaves_), o);
    EXPECT_TRUE(r.ok()) << r.error().message();
    for (auto& [name, state] : r->states) leaves_[name] = std::move(state);
    return std::move(r->outputs.at("logits"));
  }

 private:
  const ModelFile& file_;
  const Graph& g_;
  Leaves leaves_;
  int64_t past_ = 0;
};

// Logits after the prompt and the greedy continuation; chunk: tokens a step of the prompt.
void check(const ModelFile& file, const Graph& g, const nlohmann::json& run, size_t chunk, double tolerance) {
  Stepper stepper(file, g);
  const auto prompt = run["prompt_ids"].get<std::vector<int64_t>>();
  RefTensor logits;
  for (size_t at = 0; at < prompt.size(); at += chunk)
    logits = stepper.step({prompt.begin() + static_cast<std::ptrdiff_t>(at),
                           prompt.begin() + static_cast<std::ptrdiff_t>(std::min(prompt.size(), at + chunk))});
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(logits.f[i], run["logits_first16"][i].get<double>(), tolerance) << i;
  for (size_t n = 0; n < 4; ++n) {
    const auto best = std::max_element(logits.f.begin(), logits.f.end()) - logits.f.begin();
    EXPECT_EQ(best, run["greedy"][n].get<int64_t>());
    logits = stepper.step({best});
  }
}

TEST(Model, TinyLlamasGiveTheirLogits) {
  std::ifstream manifest(TERN_TEST_DATA "/gguf/manifest.json");
  ASSERT_TRUE(manifest.good());
  const auto doc = nlohmann::json::parse(manifest);
  int seen = 0;
  for (const auto& c : doc["cases"]) {
    const std::string name = c["name"];
    const bool quantised = name == "model_ok_q4_0.gguf";
    if (!quantised && name != "model_ok_small.gguf") continue;
    SCOPED_TRACE(name);
    ++seen;
    auto file = open_model_file(TERN_TEST_DATA "/gguf/" + name);
    ASSERT_TRUE(file.ok()) << file.error().message();
    const auto key = [&](const char* k) {
      return static_cast<int64_t>(*(*file)->metadata().u64(std::string("llama.") + k));
    };
    Llama llama{**file, {}, key("attention.head_count"), key("attention.head_count_kv"), {}, {}, {}};
    auto g = llama.build(static_cast<int>(key("block_count")));
    ASSERT_TRUE(g.ok()) << g.error().message();
    check(**file, *g, c["run"], 11, 2e-6);  // the manifest has six digits after the point
    check(**file, *g, c["run"], 3, 2e-6);
    EXPECT_GT(decompose_all(*g), 4);
    g->compact();
    check(**file, *g, c["run"], 11, 1e-4);
  }
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace tern
