// Models on a device whose bindings are small: steps of as many tokens as fit, and the context that would.
#include <gtest/gtest.h>

#include <string>

#include "tern/llm.h"
#include "tern/llm/synthetic.h"

namespace tern {
namespace {

LlmOptions on_mean(uint32_t context) {
  LlmOptions options;
  options.device = "mean";
  options.context = context;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  return options;
}

TEST(Bindings, StepsAreAsLongAsFits) {
  // 4096 floats a token: 64 tokens fill a binding of 1 MiB.
  const ModelShape wide = {"wide", "llama", 1, 64, 2, 1, 32, 4096, 256, 512, 1e4, 1e-5, false, false, true};
  const auto file = make_synthetic_model(wide, {format_by_name("q4_0"), nullptr});
  ASSERT_TRUE(file.ok()) << file.error().message();
  auto model = LanguageModel::open(**file, on_mean(512));
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->chunk(), 64u);
  LlmOptions host = on_mean(512);
  host.device = "cpu";
  auto same = LanguageModel::open(**file, host);
  ASSERT_TRUE(same.ok()) << same.error().message();
  EXPECT_EQ(same->chunk(), 512u);
}

TEST(Bindings, AContextBeyondThemIsRefusedWithTheOneThatFits) {
  const ModelShape shape = **model_shape("smollm2-135m");
  const auto file = make_synthetic_model(shape, {format_by_name("q4_1"), nullptr});
  ASSERT_TRUE(file.ok()) << file.error().message();
  // Keys of a layer: 192 halves a token, in whole pages of 32 tokens.
  const auto refused = LanguageModel::plan(**file, on_mean(4096));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::limit);
  EXPECT_NE(refused.error().text.find("a context of 2720 tokens would fit"), std::string::npos) << refused.error().text;
  const auto fits = LanguageModel::plan(**file, on_mean(2720));
  EXPECT_TRUE(fits.ok()) << fits.error().message();
}

}  // namespace
}  // namespace tern
