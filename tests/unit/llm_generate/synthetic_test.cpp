// Models made in memory: the published sizes, weights of every format that look like weights, and steps that run.
#include "tern/llm/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tern/llm.h"

namespace tern {
namespace {

ModelShape tiny() { return {"tiny", "llama", 2, 256, 4, 2, 64, 512, 512, 64, 1e4, 1e-5, false, false, true}; }

TEST(Shapes, HaveThePublishedNumbersOfParameters) {
  // By the models' cards and weight indices, tied matrices once.
  const std::map<std::string_view, uint64_t> published = {
      {"smollm2-135m", 134515008},    {"smollm2-360m", 361821120},       {"smollm2-1.7b", 1711376384},
      {"tinyllama-1.1b", 1100048384}, {"llama-2-7b", 6738415616},        {"llama-3-8b", 8030261248},
      {"llama-3-70b", 70553706496},   {"llama-3.2-1b", 1235814400 + 32}, {"llama-3.2-3b", 3212749824 + 64},
      {"mistral-7b", 7248023552},     {"qwen3-0.6b", 596049920},         {"qwen3-1.7b", 1720574976},
      {"qwen3-4b", 4022468096},       {"qwen3-8b", 8190735360},          {"bonsai-8b", 8190735360},
      {"gemma-3-270m", 268098176},    {"gemma-3-1b", 999885952}};
  for (const ModelShape& shape : model_shapes()) {
    ASSERT_TRUE(published.contains(shape.name)) << shape.name;
    EXPECT_EQ(shape.parameters(), published.at(shape.name)) << shape.name;
    EXPECT_EQ(*model_shape(shape.name), &shape);
  }
  const auto none = model_shape("abacus-1b");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().text.find("llama-3-8b"), std::string::npos);
}

TEST(Synthetic, FilesHoldTheParametersThatShapesCount) {
  for (const ModelShape& shape : model_shapes()) {
    const auto file = make_synthetic_model(shape, {format_by_name("f16"), format_by_name("f32")});
    ASSERT_TRUE(file.ok()) << file.error().message();
    uint64_t sum = 0;
    for (const ListedTensor& t : (*file)->list_tensors()) {
      uint64_t n = 1;
      for (const int64_t extent : t.shape) n *= static_cast<uint64_t>(extent);
      sum += n;
      const bool wide = t.shape.size() == 1 || t.name == "token_embd.weight" || t.name == "output.weight";
      EXPECT_EQ(t.type, wide ? "f32" : "f16") << t.name;
      EXPECT_EQ(t.bytes, n * (wide ? 4 : 2)) << t.name;
    }
    EXPECT_EQ(sum, shape.parameters()) << shape.name;
  }
}

TEST(Synthetic, WeightsDecodeToTheSizeOfWeights) {
  for (const Format* format : all_formats()) {
    const auto file = make_synthetic_model(tiny(), {format, nullptr});
    ASSERT_TRUE(file.ok()) << file.error().message();
    const WeightInfo* info = (*file)->find("blk.1.ffn_up.weight");
    const auto planes = (*file)->planes(*info);
    ASSERT_TRUE(planes.ok()) << planes.error().message();
    ASSERT_EQ(planes->p[0].size(), info->bytes);
    const int64_t blocks = 256 * 512 / format->elements();
    std::vector<float> values(256 * 512);
    for (int64_t b = 0; b < blocks; ++b) format->decode(*planes, b, values.data() + b * format->elements());
    double sum = 0, squares = 0;
    for (const float v : values) sum += v, squares += static_cast<double>(v) * v;
    const double rms = std::sqrt(squares / static_cast<double>(values.size()));
    EXPECT_GT(rms, 0.01) << format->name;
    EXPECT_LT(rms, 0.04) << format->name;
    EXPECT_LT(std::abs(sum / static_cast<double>(values.size())), 0.2 * rms) << format->name;
    std::sort(values.begin(), values.end());
    EXPECT_LT(values[1000], 0) << format->name;
    EXPECT_GT(values[values.size() - 1000], 0) << format->name;
  }
}

TEST(Synthetic, SeedsDecideTheWeights) {
  const auto bytes = [](uint64_t seed) {
    SyntheticOptions options{format_by_name("q4_0"), nullptr};
    options.seed = seed;
    auto file = make_synthetic_model(tiny(), options);
    const auto planes = (*file)->planes(*(*file)->find("token_embd.weight"));
    return std::vector<std::byte>(planes->p[0].begin(), planes->p[0].end());
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

TEST(Synthetic, EveryFormatRuns) {
  for (const Format* format : all_formats()) {
    const auto file = make_synthetic_model(tiny(), {format, nullptr});
    ASSERT_TRUE(file.ok()) << file.error().message();
    LlmOptions options;
    options.device_options.threads = 1;
    options.plugin_path = TERN_LLVM_PLUGIN_PATH;
    auto model = LanguageModel::open(**file, options);
    if (!model && model.error().code == Code::unsupported) continue;  // read and written only
    ASSERT_TRUE(model.ok()) << format->name << ": " << model.error().message();
    const std::vector<TokenId> ids = {1, 300, 17, 99, 511};
    SequenceStep step;
    step.tokens = ids;
    step.sampling.temperature = 0;
    const auto result = model->step(std::span(&step, 1), true);
    ASSERT_TRUE(result.ok()) << format->name << ": " << result.error().message();
    const std::vector<float>& logits = (*result)[0].logits;
    ASSERT_EQ(logits.size(), 512u);
    double squares = 0;
    for (const float v : logits) squares += static_cast<double>(v) * v;
    const double rms = std::sqrt(squares / 512);
    EXPECT_GT(rms, 0.05) << format->name;  // 0.02 * sqrt(256) is what random rows give
    EXPECT_LT(rms, 5) << format->name;
  }
}

TEST(Synthetic, RefusesByName) {
  ModelShape odd = tiny();
  odd.hidden = 240;
  const auto file = make_synthetic_model(odd, {format_by_name("q4_0"), nullptr});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, Code::unsupported);
  EXPECT_NE(file.error().text.find("q4_0"), std::string::npos);
  ModelShape other = tiny();
  other.architecture = "abacus";
  const auto unknown = make_synthetic_model(other, {format_by_name("q4_0"), nullptr});
  ASSERT_TRUE(unknown.ok());
  const auto model = LanguageModel::inspect(**unknown);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().text.find("'abacus'"), std::string::npos);
}

}  // namespace
}  // namespace tern
