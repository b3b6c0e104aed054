// Texts given to compilers of their languages. What is not here is skipped, unless TERN_TEST_REQUIRE names it.
#include "shim/tools.h"

#include "unit/emit_text/cases.h"
#include "unit/places.h"

namespace tern::test {
namespace {

class TextTools : public testing::TestWithParam<size_t> {
 protected:
  const shim::Tool& tool() const { return shim::tools()[GetParam()]; }
};

TEST_P(TextTools, TakeEveryText) {
  if (kSanitized) GTEST_SKIP() << "compilers are not made for sanitizers";
  const Caps caps = text_caps(tool().language, 64);
  std::vector<KernelText> texts;
  for (const TextCase& c : text_cases(caps, 3)) {
    auto text = emit_text(c.kernel, caps);
    ASSERT_TRUE(text.ok()) << c.name << ": " << text.error().message();
    texts.push_back(std::move(*text));
  }
  const Status taken = tool().takes(texts);
  if (!taken.ok() && taken.error().code == Code::not_found && !promised(tool().name))
    GTEST_SKIP() << taken.error().text;
  EXPECT_TRUE(taken.ok()) << taken.error().message();
}

TEST_P(TextTools, RefuseWhatIsWrong) {
  if (kSanitized) GTEST_SKIP() << "compilers are not made for sanitizers";
  const Caps caps = text_caps(tool().language, 8);
  const std::vector<TextCase> cases = text_cases(caps, 0);
  auto text = emit_text(cases[0].kernel, caps);
  ASSERT_TRUE(text.ok());
  const size_t last = text->text.rfind('}');
  text->text.insert(last, "  wrong_word();\n");
  const Status taken = tool().takes({&*text, 1});
  ASSERT_FALSE(taken.ok());
  if (taken.error().code == Code::not_found) GTEST_SKIP() << taken.error().text;
  EXPECT_NE(taken.error().text.find("wrong_word"), std::string::npos) << taken.error().text;
}

INSTANTIATE_TEST_SUITE_P(Compilers, TextTools, testing::Range(size_t{0}, shim::tools().size()),
                         [](const auto& param) { return std::string(shim::tools()[param.param].name); });

}  // namespace
}  // namespace tern::test
