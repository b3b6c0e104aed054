// What a model says depends on its prompt alone: not on threads, chunks, neighbours or the slot it runs in.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "tern/llm.h"

namespace tern {
namespace {

// Long enough for several key blocks, windows and chunks; ids of the 260-token case model.
std::vector<TokenId> prompt(int n, int salt) {
  std::vector<TokenId> ids = {1};
  for (int i = 1; i < n; ++i) ids.push_back(3 + (i * 37 + salt * 11 + i * i) % 250);
  return ids;
}

LlmOptions options_with(unsigned threads, uint32_t chunk, uint32_t sequences = 1) {
  LlmOptions o;
  o.device_options.threads = threads;
  o.chunk = chunk;
  o.max_sequences = sequences;
  o.plugin_path = TERN_LLVM_PLUGIN_PATH;
  return o;
}

// A small model, or a real one of its family where the environment names it.
struct Which {
  const char *name, *real, *small;
  int real_prompt;  // tokens of it that reach past a window
  bool is_real() const { return std::getenv(real) != nullptr; }
};
constexpr Which kModels[] = {
    {"Llama", "TERN_TEST_SMOLLM2", TERN_TEST_DATA "/gguf/model_ok_q4_0.gguf", 45},
    {"Gemma3", "TERN_TEST_GEMMA3", TERN_TEST_DATA "/llm/gemma3_tiny.gguf", 560},
};

GenerateOptions greedy(uint32_t n) {
  GenerateOptions g;
  g.max_tokens = n;
  g.sampling.temperature = 0;
  g.ignore_end = true;
  g.top_logits = 5;
  return g;
}

struct Said {
  std::vector<TokenId> ids;
  std::vector<std::pair<TokenId, float>> logits;  // of every step, one after the other
  bool operator==(const Said&) const = default;
};

Said say(LanguageModel& model, const std::vector<TokenId>& ids, const GenerateOptions& options) {
  Said said;
  EXPECT_TRUE(model.truncate(0, 0).ok());
  const auto out = model.generate(ids, options, [&](const GeneratedToken& t) {
    said.logits.insert(said.logits.end(), t.top_logits.begin(), t.top_logits.end());
    return true;
  });
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message());
  if (out.ok()) said.ids = out->ids;
  return said;
}

class GenerateTest : public testing::TestWithParam<Which> {
 protected:
  static LanguageModel open(const LlmOptions& options) {
    auto model = LanguageModel::open(GetParam().is_real() ? std::getenv(GetParam().real) : GetParam().small, options);
    EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message());
    return std::move(*model);
  }
};

TEST_P(GenerateTest, ThreadsAndChunksChangeNoBit) {
  LanguageModel base = open(options_with(1, 64));
  const auto ids = prompt(GetParam().is_real() ? GetParam().real_prompt : 45, 0);
  const Said want = say(base, ids, greedy(12));
  for (const auto& [threads, chunk] : {std::pair{2u, 64u}, {3u, 64u}, {1u, 1u}, {2u, 7u}, {3u, 512u}}) {
    LanguageModel other = open(options_with(threads, chunk));
    EXPECT_EQ(say(other, ids, greedy(12)), want) << threads << " threads, chunks of " << chunk;
  }
}

TEST_P(GenerateTest, NeighboursChangeNothing) {
  LanguageModel alone = open(options_with(1, 64));
  LanguageModel batch = open(options_with(2, 64, 5));
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 5; ++i) prompts.push_back(prompt(3 + 9 * i, i));
  const auto out = batch.generate_batch(prompts, greedy(10));
  ASSERT_TRUE(out.ok()) << out.error().message();
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ((*out)[i].ids, say(alone, prompts[i], greedy(10)).ids) << i;
}

TEST_P(GenerateTest, ASeedGivesOneText) {
  LanguageModel model = open(options_with(1, 64)), other = open(options_with(2, 16));
  GenerateOptions g = greedy(24);
  g.sampling = {};
  g.sampling.temperature = 1.5f;
  g.sampling.seed = 7;
  const Said first = say(model, prompt(9, 1), g);
  EXPECT_EQ(say(model, prompt(9, 1), g).ids, first.ids);
  EXPECT_EQ(say(other, prompt(9, 1), g).ids, first.ids);
}

TEST_P(GenerateTest, ForgettingGoesBackToTheSameState) {
  LanguageModel model = open(options_with(1, 64));
  const auto ids = prompt(40, 2);
  const Said want = say(model, ids, greedy(4));
  // Another text over the same pages, then the first one again.
  say(model, prompt(20, 5), greedy(8));
  EXPECT_EQ(say(model, ids, greedy(4)), want);
}

TEST_P(GenerateTest, ContextEndsWithItsNumber) {
  LlmOptions o = options_with(1, 16);
  o.context = 32;
  LanguageModel model = open(o);
  const auto out = model.generate(prompt(30, 0), greedy(64));
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->reason, StopReason::context_full);
  ASSERT_TRUE(model.truncate(0, 0).ok());
  const auto tooLong = model.generate(prompt(33, 0), greedy(1));
  ASSERT_FALSE(tooLong.ok());
  EXPECT_EQ(tooLong.error().code, Code::limit);
  EXPECT_NE(tooLong.error().text.find("32"), std::string::npos) << tooLong.error().text;
}

TEST_P(GenerateTest, CancelStopsBetweenSteps) {
  LanguageModel model = open(options_with(2, 64));
  CancelToken token;
  GenerateOptions g = greedy(1000);
  g.cancel = &token;
  int seen = 0;
  const auto out = model.generate(prompt(5, 0), g, [&](const GeneratedToken&) {
    if (++seen == 3) token.cancel();
    return true;
  });
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->reason, StopReason::cancelled);
  EXPECT_EQ(out->ids.size(), 3u);
}

TEST_P(GenerateTest, StepsRefuseWhatMakesNoSense) {
  LanguageModel model = open(options_with(1, 8, 2));
  const std::vector<TokenId> bad = {0, 1 << 20};
  SequenceStep step;
  step.tokens = bad;
  EXPECT_EQ(model.step(std::span(&step, 1)).error().code, Code::invalid);
  const std::vector<TokenId> good = {1};
  step.tokens = good;
  step.sequence = 2;
  EXPECT_EQ(model.step(std::span(&step, 1)).error().code, Code::invalid);
  step.tokens = {};
  step.sequence = 0;
  EXPECT_EQ(model.step(std::span(&step, 1)).error().code, Code::invalid);
}

TEST_P(GenerateTest, ReuseFeedsOnlyWhatIsNew) {
  LanguageModel model = open(options_with(2, 16)), fresh = open(options_with(2, 16));
  GenerateOptions how = greedy(5);
  how.sampling.repeat_penalty = 1.5f;  // looks at tokens that are not fed anew
  const auto first = prompt(40, 0);
  how.reuse = true;
  const auto a = model.generate(first, how);
  ASSERT_TRUE(a.ok()) << a.error().message();
  EXPECT_EQ(a->reused_tokens, 0u);
  EXPECT_EQ(model.tokens(0).size(), 44u);  // the last token that was chosen is not fed
  // The conversation goes on, takes another turn in the middle, is asked again.
  std::vector<TokenId> longer = first;
  longer.insert(longer.end(), a->ids.begin(), a->ids.end());
  longer.push_back(7);
  std::vector<TokenId> other = first;
  other[25] = other[25] == 9 ? 8 : 9;
  for (const auto& [ids, kept] : {std::pair{longer, 44u}, {other, 25u}, {other, 39u}}) {
    how.reuse = true;
    const auto b = model.generate(ids, how);
    ASSERT_TRUE(b.ok()) << b.error().message();
    EXPECT_EQ(b->reused_tokens, kept);
    EXPECT_TRUE(fresh.truncate(0, 0).ok());
    how.reuse = false;
    const auto c = fresh.generate(ids, how);
    ASSERT_TRUE(c.ok()) << c.error().message();
    EXPECT_EQ(b->ids, c->ids);
    EXPECT_EQ(model.length(0), fresh.length(0));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GenerateTest, testing::ValuesIn(kModels),
                         [](const auto& which) { return std::string(which.param.name); });

}  // namespace
}  // namespace tern
