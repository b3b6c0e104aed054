// The ends of what a language model takes: texts that end while something is held back, contexts that are full to the
// token, steps and settings that make no sense.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "tern/llm.h"

namespace tern {
namespace {

class EdgesTest : public testing::Test {
 protected:
  static LanguageModel open(uint32_t context, uint32_t sequences = 1) {
    LlmOptions o;
    o.device_options.threads = 1;
    o.chunk = 16;
    o.context = context;
    o.max_sequences = sequences;
    o.plugin_path = TERN_LLVM_PLUGIN_PATH;
    auto model = LanguageModel::open(TERN_TEST_DATA "/gguf/model_ok_q4_0.gguf", o);
    EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message());
    return std::move(*model);
  }
  static std::vector<TokenId> ids_of(const LanguageModel& model, std::string_view text) {
    return *model.tokenizer().encode(text, {.add_special = false, .parse_special = false});
  }
  static GenerateOptions forced(const std::vector<TokenId>& ids, uint32_t n, std::string stop) {
    GenerateOptions g;
    g.max_tokens = n;
    g.sampling.temperature = 0;
    g.force = ids;
    g.stop = {std::move(stop)};
    return g;
  }
  struct Told {
    std::string streamed;
    GenerateResult result;
  };
  static Told tell(LanguageModel& model, const std::vector<TokenId>& prompt, const GenerateOptions& g) {
    Told told;
    auto out = model.generate(prompt, g, [&](const GeneratedToken& t) {
      told.streamed += t.text;
      return true;
    });
    EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message());
    if (out.ok()) told.result = std::move(*out);
    return told;
  }
};

TEST_F(EdgesTest, AnEndTokenBringsOutWhatAStopTextHeldBack) {
  LanguageModel model = open(64);
  std::vector<TokenId> ids = ids_of(model, "crab");
  ids.push_back(model.tokenizer().eos());
  const auto n = static_cast<uint32_t>(ids.size() + 4);
  const Told told = tell(model, {1}, forced(ids, n, "abacus"));
  EXPECT_EQ(told.result.reason, StopReason::end_token);
  EXPECT_EQ(told.result.text, "crab");
  EXPECT_EQ(told.streamed, "crab");
}

TEST_F(EdgesTest, AFullContextBringsOutWhatAStopTextHeldBack) {
  LanguageModel model = open(9);
  const std::vector<TokenId> ids = ids_of(model, "ababababababababababab");
  ASSERT_GT(ids.size(), 9u);
  const Told told = tell(model, {1, 5}, forced(ids, 64, "abababababababababababab"));
  EXPECT_EQ(told.result.reason, StopReason::context_full);
  EXPECT_EQ(told.result.ids.size(), 8u);  // 2 of the prompt, 7 fed, and one that was chosen behind the last
  EXPECT_EQ(told.result.text.substr(0, 6), "ababab");
  EXPECT_EQ(told.streamed, told.result.text);
}

TEST_F(EdgesTest, ACancelledAnswerIsWholeToo) {
  LanguageModel model = open(64);
  const std::vector<TokenId> ids = ids_of(model, "crabcrab");
  const GenerateOptions g = forced(ids, 64, "crabs crabs");
  size_t seen = 0;
  const auto out = model.generate(std::vector<TokenId>{1}, g, [&](const GeneratedToken&) { return ++seen < 4; });
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->reason, StopReason::cancelled);
  EXPECT_EQ(out->text, *model.tokenizer().decode(std::span(ids).first(4)));
}

TEST_F(EdgesTest, TheContextIsWhatWasAskedFor) {
  for (const uint32_t context : {1u, 5u, 32u, 33u}) {
    LanguageModel model = open(context);
    EXPECT_EQ(model.context(), context);
    const std::vector<TokenId> fits(context, 7), long_one(context + 1, 7);
    GenerateOptions g;
    g.ignore_end = true;
    const auto out = model.generate(fits, g);
    ASSERT_TRUE(out.ok()) << out.error().message();
    EXPECT_EQ(out->reason, StopReason::context_full);
    EXPECT_EQ(out->ids.size(), 1u);
    ASSERT_TRUE(model.truncate(0, 0).ok());
    const auto refused = model.generate(long_one, g);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::limit);
    EXPECT_NE(refused.error().text.find("context of " + std::to_string(context) + ";"), std::string::npos)
        << refused.error().text;
    EXPECT_EQ(model.length(0), 0u);  // no chunk of it was fed
  }
}

TEST_F(EdgesTest, ASequenceStandsOnceInAStep) {
  LanguageModel model = open(64, 2);
  const std::vector<TokenId> ids = {1};
  std::vector<SequenceStep> steps(2);
  steps[0].tokens = steps[1].tokens = ids;
  const auto out = model.step(steps);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().code, Code::invalid);
  EXPECT_NE(out.error().text.find("twice"), std::string::npos) << out.error().text;
  EXPECT_EQ(model.length(0), 0u);
  EXPECT_EQ(model.step({}).error().code, Code::invalid);
  steps[1].sequence = 1;
  EXPECT_TRUE(model.step(steps).ok());
}

TEST_F(EdgesTest, SamplingThatMakesNoSenseIsRefused) {
  LanguageModel model = open(64);
  const std::vector<TokenId> ids = {1};
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto code = [&](auto&& change) {
    SequenceStep step;
    step.tokens = ids;
    change(step.sampling);
    const auto out = model.step(std::span(&step, 1));
    return out.ok() ? std::string("ok") : std::string(code_name(out.error().code));
  };
  for (const float bad : {nan, inf, -1.f})
    EXPECT_EQ(code([&](SamplingOptions& s) { s.temperature = bad; }), "invalid") << bad;
  for (const float bad : {nan, 0.f, 1.5f})
    EXPECT_EQ(code([&](SamplingOptions& s) { s.top_p = bad; }), "invalid") << bad;
  for (const float bad : {nan, -0.5f, 1.5f})
    EXPECT_EQ(code([&](SamplingOptions& s) { s.min_p = bad; }), "invalid") << bad;
  for (const float bad : {nan, 0.f, -1.f, inf})
    EXPECT_EQ(code([&](SamplingOptions& s) { s.repeat_penalty = bad; }), "invalid") << bad;
  EXPECT_EQ(code([&](SamplingOptions& s) { s.frequency_penalty = nan; }), "invalid");
  EXPECT_EQ(code([&](SamplingOptions& s) { s.presence_penalty = -inf; }), "invalid");
  EXPECT_EQ(code([&](SamplingOptions& s) { s.top_k = -1; }), "invalid");
  EXPECT_EQ(model.length(0), 0u);
  EXPECT_EQ(code([](SamplingOptions& s) { s.temperature = 1e30f, s.top_p = 1, s.min_p = 1, s.top_k = 1 << 30; }), "ok");
  EXPECT_EQ(code([](SamplingOptions& s) { s.temperature = 1e-45f, s.repeat_penalty = 1e30f; }), "ok");
}

TEST_F(EdgesTest, NothingToGenerateIsNothing) {
  LanguageModel model = open(64, 2);
  GenerateOptions g;
  g.max_tokens = 0;
  const auto one = model.generate(std::vector<TokenId>{1}, g);
  ASSERT_TRUE(one.ok());
  EXPECT_TRUE(one->ids.empty());
  const std::vector<std::vector<TokenId>> prompts = {{1}, {1, 5}};
  const auto both = model.generate_batch(prompts, g);
  ASSERT_TRUE(both.ok()) << both.error().message();
  ASSERT_EQ(both->size(), 2u);
  for (const GenerateResult& r : *both) EXPECT_TRUE(r.ids.empty());
}

TEST_F(EdgesTest, OptionsBeyondReasonAreRefusedAtOnce) {
  const auto code = [](auto&& change) {
    LlmOptions o;
    o.plugin_path = TERN_LLVM_PLUGIN_PATH;
    change(o);
    const auto model = LanguageModel::open(TERN_TEST_DATA "/gguf/model_ok_q4_0.gguf", o);
    return model.ok() ? std::string("ok") : std::string(code_name(model.error().code));
  };
  EXPECT_EQ(code([](LlmOptions& o) { o.history = UINT32_MAX; }), "invalid");
  EXPECT_EQ(code([](LlmOptions& o) { o.chunk = UINT32_MAX; }), "invalid");
  EXPECT_EQ(code([](LlmOptions& o) { o.chunk = 0; }), "invalid");
  EXPECT_EQ(code([](LlmOptions& o) { o.max_sequences = 0; }), "invalid");
  EXPECT_EQ(code([](LlmOptions& o) { o.max_sequences = UINT32_MAX; }), "invalid");
  EXPECT_EQ(code([](LlmOptions& o) { o.context = UINT32_MAX; }), "invalid");
  EXPECT_EQ(code([](LlmOptions& o) { o.device = "abacus"; }), "not_found");
  EXPECT_EQ(code([](LlmOptions& o) { o.device_options.threads = UINT32_MAX; }), "invalid");
}

TEST_F(EdgesTest, SlotsBeyond32BitsAreRefused) {
  LlmOptions o;
  o.max_sequences = 1024;
  o.context = 1u << 30;
  o.plugin_path = TERN_LLVM_PLUGIN_PATH;
  // The case model with a larger context_length: an u32 behind the key and its type.
  std::ifstream in(TERN_TEST_DATA "/gguf/model_ok_q4_0.gguf", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string key = "llama.context_length";
  ASSERT_NE(bytes.find(key), std::string::npos);
  bytes.replace(bytes.find(key) + key.size() + 4, 4, std::string("\0\0\0\x40", 4));
  const std::string path = testing::TempDir() + "long_context.gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  const auto model = LanguageModel::open(path, o);
  std::remove(path.c_str());
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, Code::limit) << model.error().message();
  EXPECT_NE(model.error().text.find("2097120"), std::string::npos) << model.error().text;  // 2^31 / 1024, whole pages
}

}  // namespace
}  // namespace tern
