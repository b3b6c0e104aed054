#include "machine/levels.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "backends/cpu/device.h"

namespace tern::test {

namespace {

constexpr Level kLevels[] = {
    {"x86-64-v2", {}, true},
    {"x86-64-v3", {}, true},
    {"x86-64-v3+avxvnni", {}, false},
    {"x86-64-v4", {}, true},
    {"x86-64-v4+avx512vnni", {}, false},
    {"x86-64-v4+avx512vnni+avx512bf16+avx512vbmi", {}, false},
    {"neon", "cortex-a53", true},
    {"neon+dotprod", "neoverse-n1", false},
    {"neon+dotprod+i8mm", "max", false},
};

// From the least on; a processor has all before its own.
constexpr std::string_view kBases[][3] = {{"x86-64-v2", "x86-64-v3", "x86-64-v4"}, {"neon"}};

std::vector<std::string_view> words(std::string_view isa) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at <= isa.size();) {
    const size_t plus = std::min(isa.find('+', at), isa.size());
    out.push_back(isa.substr(at, plus - at));
    at = plus + 1;
  }
  return out;
}

const std::string& this_processor() {
  static const std::string isa = cpu::detect_caps({.threads = 1, .isa = {}}).isa;
  return isa;
}

}  // namespace

std::span<const Level> levels() { return kLevels; }

const Level& level_of(std::string_view isa) {
  const auto* found =
      std::find_if(std::begin(kLevels), std::end(kLevels), [&](const Level& l) { return l.isa == isa; });
  EXPECT_NE(found, std::end(kLevels)) << isa;
  return found == std::end(kLevels) ? kLevels[0] : *found;
}

bool runs_on_this_processor(std::string_view isa) {
  const auto have = words(this_processor()), want = words(isa);
  for (const auto& bases : kBases) {
    const auto* mine = std::find(std::begin(bases), std::end(bases), have[0]);
    const auto* wanted = std::find(std::begin(bases), std::end(bases), want[0]);
    if (mine == std::end(bases) || wanted > mine) continue;
    return std::all_of(want.begin() + 1, want.end(), [&](std::string_view feature) {
      return std::find(have.begin() + 1, have.end(), feature) != have.end();
    });
  }
  return false;
}

std::string missing(std::string_view isa) {
  if (runs_on_this_processor(isa)) return {};
  const std::string lacks = "this processor is " + this_processor() + ", wanted " + std::string(isa);
  if (level_of(isa).machine.empty()) return lacks;
  if (std::string_view(TERN_TEST_RUNNER).empty())
    return lacks + ", and there is no aarch64-linux-gnu-g++ to build the runner with (Debian: g++-aarch64-linux-gnu)";
  if (std::string_view(TERN_TEST_EMULATOR).empty())
    return lacks + ", and there is no qemu-aarch64-static to emulate it (Debian: qemu-user-static)";
  return {};
}

bool promised(std::string_view isa) {
  const char* text = std::getenv("TERN_TEST_REQUIRE");
  return text != nullptr && !level_of(isa).machine.empty() &&
         std::string_view(text).find("aarch64") != std::string::npos;
}

bool tested(std::string_view isa) {
  const char* text = std::getenv("TERN_TEST_ON");
  if (text == nullptr) return true;
  const bool host = level_of(isa).machine.empty() || runs_on_this_processor(isa);
  return std::string_view(text) == (host ? "host" : "emulator");
}

std::vector<std::string> all_levels() {
  std::vector<std::string> out;
  for (const Level& l : kLevels) {
    if (tested(l.isa)) out.emplace_back(l.isa);
  }
  return out;
}

std::vector<std::string> base_levels() {
  std::vector<std::string> out = all_levels();
  std::erase_if(out, [](const std::string& isa) { return !level_of(isa).base; });
  return out;
}

std::string level_name(const testing::TestParamInfo<std::string>& level) {
  std::string out = level.param;
  for (char& c : out) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return out;
}

}  // namespace tern::test
