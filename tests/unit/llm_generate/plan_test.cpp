// A plan beside what is there after loading, and the context that it names beside the plans around it.
#include "llm/generate/plan.h"

#include <gtest/gtest.h>

#include <string>

namespace tern {
namespace {

LlmOptions options_for(const char* device) {
  LlmOptions options;
  options.device = device;
  options.device_options.threads = 1;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  return options;
}

std::unique_ptr<ModelFile> open_case(const char* name) {
  auto file = open_model_file(std::string(TERN_TEST_DATA "/gguf/") + name);
  EXPECT_TRUE(file.ok());
  return std::move(*file);
}

// The device's own account of its memory is the measure: the mean device counts every buffer.
TEST(Plan, IsWhatTheDeviceGives) {
  for (const char* name : {"model_ok_small.gguf", "model_ok_q4_0.gguf", "model_ok_f16_untied.gguf"}) {
    const auto file = open_case(name);
    for (const uint32_t context : {40u, 500u}) {
      LlmOptions options = options_for("mean");
      const auto info = LanguageModel::inspect(*file);
      ASSERT_TRUE(info.ok());
      options.context = std::min(context, info->context);
      const auto plan = LanguageModel::plan(*file, options);
      ASSERT_TRUE(plan.ok()) << plan.error().message();
      EXPECT_FALSE(plan->refusal);
      auto model = LanguageModel::open(*file, options);
      ASSERT_TRUE(model.ok()) << model.error().message();
      const DeviceMemory memory = model->executable().device().memory();
      const auto used = static_cast<double>(memory.total - memory.available);
      EXPECT_NEAR(static_cast<double>(plan->need.total()), used, 0.05 * used) << name << " with " << context;
    }
  }
}

TEST(Plan, IsWhatTheSessionHolds) {
  const auto file = open_case("model_ok_q4_0.gguf");
  const LlmOptions options = options_for("cpu");
  const auto plan = LanguageModel::plan(*file, options);
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  auto model = LanguageModel::open(*file, options);
  ASSERT_TRUE(model.ok()) << model.error().message();
  const MemoryNeed held = model->session().memory();
  EXPECT_EQ(plan->need.weights, held.weights);
  EXPECT_EQ(plan->need.state, held.state);
  EXPECT_EQ(plan->need.scratch, held.scratch);
  EXPECT_EQ(plan->need.io, held.io);
}

TEST(Plan, NamesTheLargestContextThatFits) {
  const auto file = open_case("model_ok_q4_0.gguf");
  const auto info = LanguageModel::inspect(*file);
  ASSERT_TRUE(info.ok());
  LlmOptions options = options_for("cpu");
  const auto device = open_device("cpu", options.device_options);
  ASSERT_TRUE(device.ok());
  const auto need = [&](uint32_t context) {
    options.context = context;
    const auto plan = LanguageModel::plan(*file, options);
    EXPECT_TRUE(plan.ok()) << plan.error().message();
    return plan->need;
  };
  const MemoryNeed whole = need(info->context), least = need(32);
  ASSERT_GT(info->context, 64u);
  for (const double share : {0.01, 0.3, 0.77, 0.999}) {
    const auto available =
        least.total() + static_cast<uint64_t>(share * static_cast<double>(whole.total() - least.total()));
    options.context = info->context;
    const Status status = llm::check_fits(*file, *info, options, *device, whole, {{available, available}, 0});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::out_of_memory);
    EXPECT_EQ(status.error().need, whole.total());
    EXPECT_EQ(status.error().have, available);
    const std::string text = status.error().text, before = "; a context of ";
    const size_t at = text.find(before);
    ASSERT_NE(at, std::string::npos) << text;
    const auto named = static_cast<uint32_t>(std::stoul(text.substr(at + before.size())));
    EXPECT_LE(need(named).total(), available);
    EXPECT_GT(need(std::min(named + 32, info->context)).total(), available);
  }
  options.context = info->context;
  const Status none = llm::check_fits(*file, *info, options, *device, whole, {{100, 100}, 0});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().text.find("not even"), std::string::npos);
  EXPECT_TRUE(llm::check_fits(*file, *info, options, *device, whole, {{whole.total(), whole.total()}, 0}).ok());
  // What the host takes for itself is not there for the device.
  EXPECT_FALSE(llm::check_fits(*file, *info, options, *device, whole, {{whole.total(), whole.total()}, 1}).ok());
}

}  // namespace
}  // namespace tern
