// Walks tests/data/gguf/manifest.json: every file opens or is refused as the manifest says, in time and memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "matches.h"
#include "tern/import/model_file.h"

namespace tern {
namespace {

struct Case {
  std::string name, stage, expect;
  std::vector<std::string> must_mention;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const nlohmann::json& manifest() {
  static const nlohmann::json data = nlohmann::json::parse(std::ifstream(TERN_TEST_DATA "/gguf/manifest.json"));
  return data;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& c : manifest()["cases"]) {
    out.push_back({c["name"], c["stage"], c["expect"], c["must_mention"]});
  }
  return out;
}

// Everything a listing does with a file: all of it must be printable as JSON.
void list_everything(const ModelFile& file) {
  nlohmann::json keys, tensors;
  for (const ListedKey& key : file.list_keys())
    keys.push_back({{"name", key.name}, {"type", key.type}, {"text", key.text}});
  for (const ListedTensor& t : file.list_tensors())
    tensors.push_back({{"name", t.name}, {"type", t.type}, {"shape", t.shape}});
  const std::string text = keys.dump() + tensors.dump();  // throws on bad UTF-8
  EXPECT_TRUE(is_utf8(text));
  for (const WeightInfo& weight : file.weights()) {
    auto planes = file.planes(weight);
    ASSERT_TRUE(planes.ok()) << planes.error().message();
    ASSERT_EQ((*planes).p[0].size(), weight.bytes);
    unsigned sum = 0;
    for (std::byte b : (*planes).p[0]) sum += static_cast<unsigned>(b);
    EXPECT_LT(sum, UINT_MAX);  // every byte can be touched
  }
}

long peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

class GgufManifest : public testing::TestWithParam<Case> {};

TEST_P(GgufManifest, BehavesAsItSays) {
  const Case& c = GetParam();
  const long peak_before = peak_mib();      // other tests of this process have peaks of their own
  const std::clock_t start = std::clock();  // processor time: other work of the machine does not count
  auto file = open_model_file(std::string(TERN_TEST_DATA "/gguf/") + c.name);
  if (file) list_everything(**file);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, manifest()["limits"]["seconds"].get<double>());
  EXPECT_LT(peak_mib() - peak_before, manifest()["limits"]["rss_mib"].get<long>());

  const bool may_fail = c.expect != "ok";
  if (c.stage == "container") {
    if (c.expect == "ok") {
      ASSERT_TRUE(file.ok()) << file.error().message();
    } else if (c.expect == "error") {
      ASSERT_FALSE(file.ok());
    }
  } else if (c.name != "model_split_count.gguf") {
    // What is wrong with these shows later: as containers they are whole.
    ASSERT_TRUE(file.ok()) << file.error().message();
  }
  if (file.ok()) return;
  ASSERT_TRUE(may_fail) << file.error().message();
  std::string message = file.error().message();
  EXPECT_TRUE(is_utf8(message));
  EXPECT_NE(message.find(c.name), std::string::npos) << message;
  EXPECT_TRUE(error_offset(file.error()).has_value()) << message;
  const std::string path = std::string(TERN_TEST_DATA "/gguf/") + c.name;  // its own name must not be what matches
  for (size_t at; (at = message.find(path)) != std::string::npos;) message.erase(at, path.size());
  for (const std::string& pattern : c.must_mention)
    EXPECT_TRUE(matches(message, pattern)) << pattern << " in: " << message;
  if (std::getenv("TERN_PRINT_MESSAGES")) printf("%-36s %s\n", c.name.c_str(), message.c_str());
}

INSTANTIATE_TEST_SUITE_P(Cases, GgufManifest, testing::ValuesIn(cases()), [](const auto& param) {
  std::string name = param.param.name.substr(0, param.param.name.find('.'));
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace tern
