// What families make of a file's keys, and a small model against an evaluation by other means
// (tests/data/llm/tools/make_gemma3_tiny.py).
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tern/llm.h"
#include "unit/import/gguf_builder.h"

namespace tern {
namespace {

// The keys and tensors of a seven-layer gemma3; a test changes the keys.
struct GemmaFile {
  std::map<std::string, uint32_t> sizes = {{"gemma3.context_length", 64},      {"gemma3.embedding_length", 8},
                                           {"gemma3.block_count", 7},          {"gemma3.feed_forward_length", 16},
                                           {"gemma3.attention.head_count", 2}, {"gemma3.attention.head_count_kv", 1},
                                           {"gemma3.attention.key_length", 4}, {"gemma3.attention.sliding_window", 9}};
  std::map<std::string, float> numbers = {{"gemma3.attention.layer_norm_rms_epsilon", 1e-6f},
                                          {"gemma3.rope.freq_base", 1e6f}};
  std::map<std::string, std::string> texts;
  std::string without;  // a tensor

  std::string bytes() const {
    GgufBuilder g;
    g.text("general.architecture", "gemma3");
    for (const auto& [key, value] : sizes) g.scalar<uint32_t>(key, 4, value);
    for (const auto& [key, value] : numbers) g.scalar<float>(key, 6, value);
    for (const auto& [key, value] : texts) g.text(key, value);
    g.array<std::string>("tokenizer.ggml.tokens", 8, {"<pad>", "<eos>", "<bos>", "a"});
    const auto tensor = [&](const std::string& name, std::vector<uint64_t> ne) {
      uint64_t n = 4;
      for (const uint64_t e : ne) n *= e;
      if (name != without) g.tensor(name + ".weight", ne, 0, std::string(n, '\x3c'));
    };
    tensor("token_embd", {8, 4});
    tensor("output_norm", {8});
    for (int i = 0; i < 7; ++i) {
      const std::string b = "blk." + std::to_string(i) + ".";
      for (const char* name : {"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"}) tensor(b + name, {8});
      for (const char* name : {"attn_q_norm", "attn_k_norm"}) tensor(b + name, {4});
      tensor(b + "attn_q", {8, 8}), tensor(b + "attn_k", {8, 4}), tensor(b + "attn_v", {8, 4});
      tensor(b + "attn_output", {8, 8});
      tensor(b + "ffn_gate", {8, 16}), tensor(b + "ffn_up", {8, 16}), tensor(b + "ffn_down", {16, 8});
    }
    return g.build();
  }
};

// The graph's text, or the error.
std::string graph_of(const GemmaFile& described) {
  const TempFolder folder;
  auto file = open_model_file(folder.write("gemma.gguf", described.bytes()));
  if (!file) return file.error().message();
  const auto graph = build_step_graph(**file, {});
  return graph ? print(*graph) : graph.error().message();
}

std::vector<std::string> lines_with(const std::string& text, const std::string& what) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.find(what) != std::string::npos) out.push_back(line);
  }
  return out;
}

bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

// By layer: whether its attention has a window; its positions then have the base of windows. A base of 10000 is the
// op's own and not printed.
std::string windows(const GemmaFile& described, const std::string& window_base = "") {
  const std::string text = graph_of(described);
  const auto attention = lines_with(text, " = attention("), rope = lines_with(text, " = rope(");
  std::string out;
  if (rope.size() != 2 * attention.size()) return text;
  for (size_t i = 0; i < attention.size(); ++i) {
    const bool window = has(attention[i], "window = 9");
    out += window ? 'w' : '-';
    for (const std::string& r : {rope[2 * i], rope[2 * i + 1]}) {
      const size_t at = r.find("base = ");
      const std::string base = at == std::string::npos ? "" : r.substr(at + 7, r.find_first_of(",}", at) - at - 7);
      EXPECT_EQ(base, window ? window_base : "1e+06") << r;
      EXPECT_TRUE(has(r, "halves")) << r;
    }
  }
  return out;
}

TEST(Gemma3, EverySixthLayerSeesAll) { EXPECT_EQ(windows({}), "wwwww-w"); }

TEST(Gemma3, KeysChangeWindowsAndPositions) {
  GemmaFile f;
  f.sizes["gemma3.attention.sliding_window_pattern"] = 3;
  EXPECT_EQ(windows(f), "ww-ww-w");
  f.sizes["gemma3.attention.sliding_window_pattern"] = 1;
  EXPECT_EQ(windows(f), "-------");
  f = {};
  f.numbers["gemma3.rope.freq_base_swa"] = 500;
  EXPECT_EQ(windows(f, "500"), "wwwww-w");
  f = {};
  f.texts["gemma3.rope.scaling.type"] = "linear";
  f.numbers["gemma3.rope.scaling.factor"] = 8;
  EXPECT_EQ(windows(f), "wwwww-w");
  const auto stretched = lines_with(graph_of(f), "factor = 8");
  EXPECT_EQ(stretched.size(), 2u);  // q and k of the one layer that sees all
}

TEST(Gemma3, ScoresAreScaledByKeyLengthOrAsTheFileSays) {
  GemmaFile f;
  EXPECT_EQ(lines_with(graph_of(f), "scale = 0.5").size(), 7u);
  f.numbers["gemma3.attention.scale"] = 0.25;
  EXPECT_EQ(lines_with(graph_of(f), "scale = 0.25").size(), 7u);
}

TEST(Gemma3, WhatIsMissingIsNamed) {
  for (const char* key :
       {"gemma3.context_length", "gemma3.embedding_length", "gemma3.block_count", "gemma3.feed_forward_length",
        "gemma3.attention.head_count", "gemma3.attention.key_length", "gemma3.attention.sliding_window"}) {
    GemmaFile f;
    f.sizes.erase(key);
    EXPECT_TRUE(has(graph_of(f), key)) << graph_of(f);
  }
  for (const char* key : {"gemma3.attention.layer_norm_rms_epsilon", "gemma3.rope.freq_base"}) {
    GemmaFile f;
    f.numbers.erase(key);
    EXPECT_TRUE(has(graph_of(f), key)) << graph_of(f);
  }
  for (const char* tensor : {"blk.3.post_ffw_norm", "blk.0.attn_q_norm", "output_norm"}) {
    GemmaFile f;
    f.without = tensor;
    EXPECT_TRUE(has(graph_of(f), tensor)) << graph_of(f);
  }
}

TEST(Gemma3, WhatMakesNoSenseIsRefused) {
  const auto said = [](const std::function<void(GemmaFile&)>& change) {
    GemmaFile f;
    change(f);
    return graph_of(f);
  };
  EXPECT_TRUE(has(said([](auto& f) { f.sizes["gemma3.attention.sliding_window"] = 0; }), "sliding_window = 0"));
  EXPECT_TRUE(has(said([](auto& f) { f.sizes["gemma3.attention.sliding_window_pattern"] = 0; }), "_pattern = 0"));
  EXPECT_TRUE(has(said([](auto& f) { f.numbers["gemma3.rope.freq_base_swa"] = -1; }), "freq_base_swa"));
  EXPECT_TRUE(has(said([](auto& f) { f.numbers["gemma3.attention.scale"] = 0; }), "attention.scale"));
  EXPECT_TRUE(has(said([](auto& f) { f.numbers["gemma3.final_logit_softcapping"] = 30; }), "final_logit_softcapping"));
  EXPECT_TRUE(has(said([](auto& f) { f.sizes["gemma3.attention.key_length"] = 6; }), "attn_q"));
}

// Greedy ids and logits; a window of 8 lies behind a prompt of 41 tokens, so chunks of any size cross it.
TEST(Gemma3, SaysWhatTheReferenceSays) {
  const auto golden = nlohmann::json::parse(std::ifstream(TERN_TEST_DATA "/llm/gemma3_tiny.json"));
  const auto ids = golden["prompt_ids"].get<std::vector<TokenId>>();
  const double spread = golden["logits_std"];
  GenerateOptions g;
  g.max_tokens = 12;
  g.sampling.temperature = 0;
  g.ignore_end = true;
  g.top_logits = 1000;
  for (const bool precise : {true, false}) {
    for (const uint32_t chunk : {1u, 7u, 512u}) {
      LlmOptions o;
      o.precise = precise;
      o.chunk = chunk;
      o.device_options.threads = 2;
      o.plugin_path = TERN_LLVM_PLUGIN_PATH;
      auto model = LanguageModel::open(TERN_TEST_DATA "/llm/gemma3_tiny.gguf", o);
      ASSERT_TRUE(model.ok()) << model.error().message();
      std::map<TokenId, double> first;
      const auto out = model->generate(ids, g, [&](const GeneratedToken& t) {
        if (first.empty()) first.insert(t.top_logits.begin(), t.top_logits.end());
        return true;
      });
      ASSERT_TRUE(out.ok()) << out.error().message();
      EXPECT_EQ(out->ids, golden["greedy"].get<std::vector<TokenId>>()) << "precise " << precise << " chunk " << chunk;
      for (int i = 0; i < 16; ++i)
        EXPECT_NEAR(first.at(i), golden["logits_first16"][static_cast<size_t>(i)].get<double>(),
                    (precise ? 1e-5 : 0.1) * spread);
    }
  }
}

}  // namespace
}  // namespace tern
