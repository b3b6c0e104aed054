// Modules by the rules of SPIR-V, as its own checker knows them.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "unit/emit_spirv/modules.h"
#include "unit/places.h"
#include "unit/temp_folder.h"

namespace tern::test {
namespace {

using namespace kir;

// What the checker says of all of them; empty: they are sound.
std::string faults_of(const std::vector<KernelSpirv>& modules) {
  const TempFolder folder;
  std::string all;
  for (const KernelSpirv& m : modules) {
    const std::string file =
        folder.write(m.entry, std::string(reinterpret_cast<const char*>(m.words.data()), m.words.size() * 4));
    const std::string log = folder.file("log"), command = std::string(TERN_TEST_SPIRV_VAL) +
                                                          " --target-env vulkan1.1 " + file + " >" + log + " 2>&1";
    if (std::system(command.c_str()) == 0) continue;
    std::ifstream text(log);
    std::stringstream said;
    said << text.rdbuf();
    all += m.entry + ": " + said.str();
  }
  return all;
}

struct Place {
  std::string name;
  Caps caps;
};
std::vector<Place> places() {
  std::vector<Place> out = {{"lacks nothing", spirv_caps()}, {"is poor", poor(spirv_caps())}};
  out.push_back({"multiplies bytes", spirv_caps()});
  out.back().caps.dot4 = Dot4::fast;
  out.back().caps.language = "spirv+float_controls+integer_dot";
  out.push_back({"writes products of bytes out", spirv_caps()});
  out.back().caps.dot4 = Dot4::fast;
  out.push_back({"fetches texels", spirv_caps()});
  out.back().caps.language = "spirv+texels";
  out.push_back({"fuses", spirv_caps()});
  out.back().caps.fma = true;
  return out;
}

TEST(Spirv, ModulesAreSound) {
  if (*TERN_TEST_SPIRV_VAL == '\0' && !promised("vulkan")) GTEST_SKIP() << "there is no spirv-val: install spirv-tools";
  for (const Place& place : places()) {
    SCOPED_TRACE("a device that " + place.name);
    std::vector<KernelSpirv> modules;
    for (const TextCase& c : text_cases(place.caps, 24)) {
      auto module = emit_spirv(c.kernel, place.caps);
      ASSERT_TRUE(module.ok()) << c.name << ": " << module.error().message();
      EXPECT_EQ(module->invocations, c.kernel.lanes);
      modules.push_back(std::move(*module));
    }
    modules.push_back(*emit_spirv(alike_case(place.caps).kernel, place.caps));
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_EQ(faults_of(modules), "");
  }
}

// The checker would find a fault: a module whose last instruction is gone.
TEST(Spirv, TheCheckerFindsFaults) {
  if (*TERN_TEST_SPIRV_VAL == '\0') GTEST_SKIP() << "there is no spirv-val: install spirv-tools";
  std::vector<KernelSpirv> modules;
  const Caps caps = spirv_caps();
  auto module = emit_spirv(text_cases(caps, 0).front().kernel, caps);
  ASSERT_TRUE(module.ok());
  module->words.pop_back();
  modules.push_back(std::move(*module));
  EXPECT_NE(faults_of(modules), "");
}

TEST(Spirv, EqualKernelsGiveEqualWords) {
  const Caps caps = spirv_caps();
  const auto first = text_cases(caps, 4), second = text_cases(caps, 4);
  std::set<std::string> entries;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto a = emit_spirv(first[i].kernel, caps), b = emit_spirv(second[i].kernel, caps);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->words, b->words) << first[i].name;
    EXPECT_TRUE(entries.insert(a->entry).second) << a->entry;
  }
}

// Instructions of one kind.
size_t count(const KernelSpirv& m, uint32_t op) {
  size_t found = 0;
  for (size_t i = 5; i < m.words.size(); i += m.words[i] >> 16) found += (m.words[i] & 0xffff) == op;
  return found;
}

TEST(Spirv, LanesFetchSideBySideWhatIsAlike) {
  constexpr uint32_t kFetch = 95, kBroadcast = 337;
  Caps caps = spirv_caps();
  caps.language = "spirv+texels";
  const auto module = emit_spirv(alike_case(caps).kernel, caps);
  ASSERT_TRUE(module.ok());
  EXPECT_EQ(count(*module, kFetch), 2u);  // ten words are two times eight lanes
  EXPECT_EQ(count(*module, kBroadcast), 10u);
  const auto alone = emit_spirv(alike_case(poor(caps)).kernel, [&] {
    Caps c = poor(caps);
    c.language = caps.language;
    return c;
  }());
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(count(*alone, kFetch), 10u);
  EXPECT_EQ(count(*alone, kBroadcast), 0u);
}

Result<KernelSpirv> with_dims(uint32_t count, const Caps& caps) {
  B b("many", 8, caps);
  Buffer y = buffer("y", kir::u32, kir::write);
  V sum = lane();
  for (uint32_t i = 0; i < count; ++i) sum = sum + dim("d" + std::to_string(i));
  y.store(lane(), sum);
  TERN_TRY(const Kernel kernel, b.finish());
  return emit_spirv(kernel, caps);
}

TEST(Spirv, WhatItCannotSayIsRefusedByName) {
  Caps caps = spirv_caps();
  EXPECT_TRUE(with_dims(31, caps).ok());
  const auto many = with_dims(32, caps);
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().code, Code::limit);
  EXPECT_NE(many.error().message().find("31"), std::string::npos);

  caps.byte_lookup = true;
  B b("look", 8, caps);
  Buffer x = buffer("x", kir::u32), y = buffer("y", kir::u32, kir::write);
  y.store(lane(), lookup4(x[lane()] & 0x0f0f0f0f, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  const auto look = b.finish();
  ASSERT_TRUE(look.ok()) << look.error().message();
  const auto refused = emit_spirv(*look, caps);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("lookup"), std::string::npos);
  EXPECT_NE(refused.error().message().find("look"), std::string::npos);

  caps.language = "wgsl";
  EXPECT_EQ(emit_spirv(*look, caps).error().code, Code::unsupported);
}

}  // namespace
}  // namespace tern::test
