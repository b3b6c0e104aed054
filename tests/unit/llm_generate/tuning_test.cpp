// Variants of kernels: the same bits in all of them, whatever the step.
#include <gtest/gtest.h>

#include <set>

#include "tern/llm.h"
#include "tern/llm/synthetic.h"

namespace tern {
namespace {

LanguageModel open(const ModelFile& file, bool precise, size_t trial) {
  LlmOptions o;
  o.device_options.threads = 2;
  o.max_sequences = 2;
  o.precise = precise;
  o.plugin_path = TERN_LLVM_PLUGIN_PATH;
  o.tuning = std::make_shared<const Tuning>(Tuning::trial(trial));
  auto model = LanguageModel::open(file, o);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message());
  return std::move(*model);
}

// Logits of a prompt in steps of 150, 5, 1 and 1 tokens.
std::vector<float> logits(LanguageModel& model) {
  std::vector<float> out;
  std::vector<TokenId> ids;
  for (int i = 0; i < 157; ++i) ids.push_back((i * 37 + i * i) % 512);
  size_t at = 0;
  for (const size_t tokens : {150u, 5u, 1u, 1u}) {
    SequenceStep step;
    step.tokens = std::span(ids).subspan(at, tokens);
    step.sampling.temperature = 0;
    auto result = model.step(std::span(&step, 1), true);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message());
    if (!result) return {};
    out.insert(out.end(), (*result)[0].logits.begin(), (*result)[0].logits.end());
    at += tokens;
  }
  return out;
}

std::set<std::string> variants(const LanguageModel& model) {
  std::set<std::string> out;
  for (const RangeInfo& range : model.executable().explain().ranges) {
    for (const StepInfo& s : range.steps) out.insert(range.when + s.problem + s.variant);
  }
  return out;
}

class TuningTest : public testing::TestWithParam<std::pair<const char*, bool>> {};

TEST_P(TuningTest, ChangesNoBit) {
  const auto& [format, precise] = GetParam();
  const ModelShape shape{"tiny", "llama", 2, 256, 12, 4, 64, 512, 512, 512, 1e4, 1e-5, false, false, true};
  const auto file = make_synthetic_model(shape, {format_by_name(format), nullptr});
  ASSERT_TRUE(file.ok());
  LanguageModel usual = open(**file, precise, 0);
  const std::vector<float> want = logits(usual);
  std::set<std::string> seen = variants(usual);
  size_t trial = 1;
  for (;; ++trial) {
    LanguageModel other = open(**file, precise, trial);
    const size_t before = seen.size();
    seen.merge(variants(other));
    if (seen.size() == before) break;
    EXPECT_EQ(logits(other), want) << "trial " << trial;
  }
  EXPECT_GE(trial, 3u);  // there are some
}

INSTANTIATE_TEST_SUITE_P(Formats, TuningTest,
                         testing::Values(std::pair("q4_0", false), std::pair("q6_k", false), std::pair("q4_k", true),
                                         std::pair("f16", false)));

}  // namespace
}  // namespace tern
