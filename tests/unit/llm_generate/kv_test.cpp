// Every kind of KV: one text whatever the threads, chunks and neighbours; sizes as planned; pages that move.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tern/llm.h"
#include "tern/llm/synthetic.h"

namespace tern {
namespace {

const ModelFile& tiny() {
  static const auto file = [] {
    const ModelShape shape{"tiny", "llama", 2, 256, 4, 2, 64, 512, 512, 512, 1e4, 1e-5, false, false, true};
    auto made = make_synthetic_model(shape, {format_by_name("q8_0"), nullptr});
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }();
  return *file;
}

LlmOptions options_with(KvKind kv, unsigned threads, uint32_t chunk, uint32_t sequences = 1) {
  LlmOptions o;
  o.device_options.threads = threads;
  o.chunk = chunk;
  o.max_sequences = sequences;
  o.kv = kv;
  o.plugin_path = TERN_LLVM_PLUGIN_PATH;
  return o;
}

LanguageModel open(const LlmOptions& options) {
  auto model = LanguageModel::open(tiny(), options);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message());
  return std::move(*model);
}

std::vector<TokenId> prompt(int n, int salt) {
  std::vector<TokenId> ids;
  for (int i = 0; i < n; ++i) ids.push_back((i * 37 + salt * 11 + i * i) % 512);
  return ids;
}

// Logits behind the prompt, fed in steps of `chunk`, to sequence `at`.
std::vector<float> logits(LanguageModel& model, const std::vector<TokenId>& ids, size_t chunk, uint32_t at = 0) {
  std::vector<float> out;
  EXPECT_TRUE(model.truncate(at, 0).ok());
  for (size_t i = 0; i < ids.size(); i += chunk) {
    SequenceStep step;
    step.sequence = at;
    step.tokens = std::span(ids).subspan(i, std::min(chunk, ids.size() - i));
    step.sampling.temperature = 0;
    auto result = model.step(std::span(&step, 1), true);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message());
    if (!result) return {};
    out = std::move((*result)[0].logits);
  }
  return out;
}

class KvTest : public testing::TestWithParam<KvKind> {};

TEST_P(KvTest, ThreadsChunksAndNeighboursChangeNoBit) {
  const auto ids = prompt(150, 0);
  LanguageModel base = open(options_with(GetParam(), 1, 64));
  const auto want = logits(base, ids, 64);
  ASSERT_EQ(want.size(), 512u);
  for (const auto& [threads, chunk] : {std::pair{2u, 64u}, {3u, 7u}, {1u, 1u}, {2u, 256u}}) {
    LanguageModel other = open(options_with(GetParam(), threads, chunk));
    EXPECT_EQ(logits(other, ids, chunk), want) << threads << " threads, chunks of " << chunk;
  }
  LanguageModel batch = open(options_with(GetParam(), 2, 64, 3));
  std::vector<std::vector<TokenId>> prompts = {prompt(33, 1), ids, prompt(90, 2)};
  GenerateOptions greedy;
  greedy.max_tokens = 6, greedy.sampling.temperature = 0, greedy.ignore_end = true;
  const auto out = batch.generate_batch(prompts, greedy);
  ASSERT_TRUE(out.ok()) << out.error().message();
  for (size_t i = 0; i < prompts.size(); ++i) {
    ASSERT_TRUE(base.truncate(0, 0).ok());
    const auto alone = base.generate(prompts[i], greedy);
    ASSERT_TRUE(alone.ok());
    EXPECT_EQ((*out)[i].ids, alone->ids) << i;
  }
}

// How far logits may lie from those with f32 KV, relative to their root mean square: a component is rounded by at most
// 2^-11 (f16), 2^-8 (bf16) of itself, 1/254 (q8) or 1/8 (q4) of the largest of its block, at most sqrt(32) times the
// block's rms; an rms of 1/sqrt(3) of that for a uniform error. Scores are small here (weights of 0.02), so that what
// values lose is what counts: once a layer, averaged over keys, and a norm may double it. int8 queries: 1/254 more.
double bound(KvKind kind) {
  const double each = kind == KvKind::f32    ? 0
                      : kind == KvKind::f16  ? 0x1p-11
                      : kind == KvKind::bf16 ? 0x1p-8
                      : kind == KvKind::q8   ? std::sqrt(32.0) / 254
                                             : std::sqrt(32.0) / 8;
  return 2 * std::sqrt(2.0) * each / std::sqrt(3.0) + 1e-5;
}

TEST_P(KvTest, DevicesComeCloseToF32) {
  const auto ids = prompt(70, 3);
  for (const char* device : {"cpu", "mean"}) {
    std::vector<std::vector<float>> said;
    for (const KvKind kind : {KvKind::f32, GetParam()}) {
      LlmOptions o = options_with(kind, 1, 64);
      o.device = device;
      o.context = 96;
      o.precise = true;
      LanguageModel model = open(o);
      said.push_back(logits(model, ids, 64));
      ASSERT_EQ(said.back().size(), 512u);
    }
    double apart = 0, size = 0;
    for (size_t i = 0; i < 512; ++i) {
      const double d = static_cast<double>(said[0][i]) - static_cast<double>(said[1][i]);
      apart += d * d, size += static_cast<double>(said[0][i]) * static_cast<double>(said[0][i]);
    }
    EXPECT_LE(std::sqrt(apart / size), bound(GetParam())) << device;
    if (GetParam() != KvKind::f32) {
      EXPECT_GT(apart, 0) << device;
    }
  }
}

TEST_P(KvTest, TakesWhatIsPlanned) {
  LlmOptions o = options_with(GetParam(), 1, 64, 2);
  o.context = 100;  // four pages of 32
  const auto plan = LanguageModel::plan(tiny(), o);
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  EXPECT_EQ(plan->kv, GetParam());
  EXPECT_EQ(plan->need.state, static_cast<uint64_t>(2 * 2 * 2 * 128 * kv_token_bytes(GetParam(), 2, 64)));
  EXPECT_EQ(open(o).session().memory().state, plan->need.state);
}

TEST_P(KvTest, PagesMoveBetweenSessions) {
  const LlmOptions o = options_with(GetParam(), 1, 64);
  LanguageModel a = open(o), b = open(o);
  const auto mine = prompt(64, 4), others = prompt(64, 5), next = prompt(1, 9);
  logits(a, mine, 64), logits(b, others, 64);
  const auto snapshot = b.session().snapshot();
  ASSERT_TRUE(snapshot.ok());
  const auto more = [&](LanguageModel& model) {
    EXPECT_TRUE(model.truncate(0, 64).ok());
    SequenceStep step;
    step.tokens = next;
    step.sampling.temperature = 0;
    auto result = model.step(std::span(&step, 1), true);
    return result ? (*result)[0].logits : std::vector<float>();
  };
  const auto want_a = more(a), want_b = more(b);
  EXPECT_NE(want_a, want_b);
  for (const char* name : {"blk.0.k", "blk.0.v", "blk.1.k", "blk.1.v"}) {
    const Status copied = b.session().copy_rows(name, 0, 2, a.session(), name, 0);  // a row is a page
    ASSERT_TRUE(copied.ok()) << copied.error().message();
  }
  EXPECT_EQ(more(b), want_a);
  ASSERT_TRUE(b.session().restore(*snapshot).ok());
  EXPECT_EQ(more(b), want_b);
}

INSTANTIATE_TEST_SUITE_P(Kinds, KvTest, testing::ValuesIn(kKvKinds),
                         [](const auto& kind) { return std::string(kv_kind_name(kind.param)); });

TEST(Kv, RefusesHeadsThatFitNoBlock) {
  LlmOptions o = options_with(KvKind::q8, 1, 64);
  const auto model = LanguageModel::open(TERN_TEST_DATA "/gguf/model_ok_q4_0.gguf", o);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, Code::unsupported);
  EXPECT_NE(model.error().text.find("multiples of 32, this one is 16"), std::string::npos) << model.error().message();
}

}  // namespace
}  // namespace tern
