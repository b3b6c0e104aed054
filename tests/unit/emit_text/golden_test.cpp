// Kernels in every language against tests/golden/emit, and through a compiler of the language where this machine has
// one. TERN_UPDATE_GOLDEN=1 in the environment rewrites the goldens; review the diff.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "emit/kernel_text.h"
#include "unit/emit_text/cases.h"
#include "unit/temp_folder.h"

namespace tern::test {

using namespace kir;

Caps text_caps(std::string_view language, uint32_t lanes) {
  Caps caps;
  caps.device = "test";
  caps.form = KernelForm::text;
  caps.language = language;
  caps.max_lanes = lanes;
  caps.subgroup = {1, 1, false};
  if (language == "opencl-vectors") caps.lockstep = true, caps.subgroup = {1, 64, true};
  if (language == "cuda") caps.subgroup = {32, 32, false};
  if (language == "hip") caps.subgroup = {32, 64, false};
  if (language == "cpp") caps.subgroup = {1, 64, false};
  if (language == "msl") caps.subgroup = {4, 64, false}, caps.f64 = false;
  if (language == "glsl" || language == "wgsl")
    caps.f16_storage = caps.byte_storage = caps.i64 = caps.f64 = false, caps.subgroup = {4, 64, false};
  if (language == "cpp" || language == "cuda" || language == "hip" || language == "wgsl") caps.dot4 = Dot4::fast;
  return caps;
}

namespace {

std::string text_of(const TextCase& c, const Caps& caps) {
  auto text = emit_text(c.kernel, caps);
  EXPECT_TRUE(text.ok()) << c.name << ": " << (text.ok() ? "" : text.error().message());
  return text.ok() ? text->text : "";
}

class TextGolden : public testing::TestWithParam<std::string_view> {};

TEST_P(TextGolden, IsWhatItWas) {
  const Caps caps = text_caps(GetParam(), GetParam() == "cuda" ? 64 : 8);
  const std::string folder = std::string(TERN_TEST_GOLDEN) + "/emit/" + std::string(GetParam());
  const bool update = std::getenv("TERN_UPDATE_GOLDEN") != nullptr;
  if (update) std::filesystem::create_directories(folder);
  for (const TextCase& c : text_cases(caps, 0)) {
    if (c.name != "control" && c.name != "shared" && c.name != "wide2") continue;
    TextCase ordered = c;
    ordered.kernel = kir::in_one_order(c.kernel);
    const std::string path = folder + "/" + c.name + ".txt", text = text_of(ordered, caps);
    if (update) {
      std::ofstream(path, std::ios::binary) << text;
      continue;
    }
    std::ifstream file(path, std::ios::binary);
    std::stringstream want;
    want << file.rdbuf();
    EXPECT_EQ(text, want.str()) << path;
  }
}
INSTANTIATE_TEST_SUITE_P(Languages, TextGolden, testing::ValuesIn(text_languages().begin(), text_languages().end()),
                         [](const auto& param) {
                           std::string name(param.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Text, UnknownLanguagesAndOpsAreRefusedByName) {
  Caps caps = text_caps("opencl", 8);
  B b("one", 8, caps);
  Buffer y = buffer("y", kir::u32, kir::write);
  y.store(lane(), lane());
  const auto kernel = b.finish();
  ASSERT_TRUE(kernel.ok());
  caps.language = "cobol";
  const auto none = emit_text(*kernel, caps);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().text.find("cobol"), std::string::npos);
  EXPECT_NE(none.error().text.find("opencl"), std::string::npos);
  Caps fast = text_caps("opencl", 8);
  fast.dot4 = Dot4::fast;
  B d("dot", 8, fast);
  Buffer z = buffer("z", kir::i32, kir::write), x = buffer("x", kir::u32);
  z.store(lane(), kir::dot4(0, x[lane()], x[lane()]));
  const auto dot = d.finish();
  ASSERT_TRUE(dot.ok());
  const auto refused = emit_text(*dot, fast);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("dot4"), std::string::npos) << refused.error().message();
}

TEST(Text, EqualKernelsGiveEqualTexts) {
  for (const std::string_view language : text_languages()) {
    const Caps caps = text_caps(language, 8);
    const auto first = text_cases(caps, 0), second = text_cases(caps, 0);
    ASSERT_EQ(first.size(), second.size());
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(text_of(first[i], caps), text_of(second[i], caps));
  }
}

// All kernels of a language in one file.
void compile(std::string_view language, const std::string& flags) {
  const char* clang = TERN_TEST_CLANG;
  if (*clang == '\0') GTEST_SKIP() << "there is no clang-19";
  const TempFolder folder;
  const std::string source = folder.file("kernels"), log = folder.file("log");
  const Caps caps = text_caps(language, 64);
  std::ofstream out(source, std::ios::binary);
  for (const TextCase& c : text_cases(caps, 12)) out << text_of(c, caps);
  out.close();
  const std::string command = std::string(clang) + " " + flags +
                              " -Werror=implicit-function-declaration -o /dev/null " + source + " >" + log + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream file(log);
  std::stringstream said;
  said << file.rdbuf();
  EXPECT_EQ(status, 0) << command << "\n" << said.str().substr(0, 4000);
}

TEST(TextCompiles, Opencl) {
  compile("opencl",
          "-x cl -cl-std=CL1.2 -target spir64-unknown-unknown -Xclang -finclude-default-header -c -emit-llvm");
}
TEST(TextCompiles, OpenclVectors) {
  compile("opencl-vectors",
          "-x cl -cl-std=CL1.2 -target spir64-unknown-unknown -Xclang -finclude-default-header -c -emit-llvm");
}
// Wavefronts of 64 lanes and of 32, and both forms of dot4.
TEST(TextCompiles, Hip) {
  for (const char* chip : {"gfx90a", "gfx1201"})
    compile("hip", std::string("-x hip --cuda-device-only -nogpuinc -nogpulib -O1 -S --offload-arch=") + chip);
}

}  // namespace
}  // namespace tern::test
