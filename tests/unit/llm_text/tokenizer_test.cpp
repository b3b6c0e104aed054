#include "tern/llm/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/utf8.h"
#include "tern/import/model_file.h"

namespace tern {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

Json json_file(const std::string& name) { return Json::parse(std::ifstream(TERN_TEST_DATA "/" + name)); }

// "abc" -> bytes -> the alphabet of byte-level vocabularies is the identity for these characters.
TokenizerData small_bpe() {
  TokenizerData data;
  data.model = "gpt2";
  data.pre = "gpt-2";
  data.tokens = {"a",
                 "b",
                 "c",
                 "ab",
                 "abc",
                 "\xC4\xA0",
                 "\xC4\xA0"
                 "a",
                 "<|end|>",
                 "<user>",
                 "bc"};
  data.types.assign(data.tokens.size(), TokenType::normal);
  data.types[7] = TokenType::control;
  data.types[8] = TokenType::user_defined;
  data.merges = {"a b", "ab c", "\xC4\xA0 a", "b c"};
  return data;
}

TokenizerData small_spm() {
  TokenizerData data;
  data.model = "llama";
  data.tokens = {"<unk>",
                 "<s>",
                 "</s>",
                 "<0x0A>",
                 "\xE2\x96\x81",
                 "a",
                 "b",
                 "\xE2\x96\x81"
                 "a",
                 "ab",
                 "<0xFF>"};
  data.types = {TokenType::unknown, TokenType::control, TokenType::control, TokenType::byte,   TokenType::normal,
                TokenType::normal,  TokenType::normal,  TokenType::normal,  TokenType::normal, TokenType::byte};
  data.scores = {0, 0, 0, 0, -5, -6, -7, -1, -2, 0};
  return data;
}

Tokenizer made(TokenizerData data) {
  auto tokenizer = Tokenizer::create(std::move(data));
  EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message());
  return std::move(*tokenizer);
}

std::string error_of(TokenizerData data) {
  const auto tokenizer = Tokenizer::create(std::move(data));
  return tokenizer.ok() ? "" : tokenizer.error().message();
}

Ids plain(const Tokenizer& tokenizer, std::string_view text) { return *tokenizer.encode(text, {.add_special = false}); }

TEST(TokenizerGolden, EqualsTheReferenceLibraries) {
  size_t cases = 0;
  for (const Json& v : json_file("llm/tokenizer_golden.json")) {
    TokenizerData data;
    data.model = v["model"];
    data.pre = v.value("pre", "");
    data.tokens = v["tokens"].get<std::vector<std::string>>();
    data.merges = v.value("merges", std::vector<std::string>());
    data.scores = v.value("scores", std::vector<float>());
    for (const int type : v.value("types", std::vector<int>())) data.types.push_back(static_cast<TokenType>(type));
    if (v.contains("add_space_prefix")) data.add_space_prefix = v["add_space_prefix"].get<bool>();
    const Tokenizer tokenizer = made(std::move(data));
    for (const Json& c : v["cases"]) {
      const std::string text = c["text"];
      const Ids ids = plain(tokenizer, text);
      ASSERT_EQ(ids, c["ids"].get<Ids>())
          << v["model"] << " " << v.value("pre", "") << " \"" << printable(text) << "\"";
      const std::string back = *tokenizer.decode(ids);
      if (c.contains("decoded")) {
        EXPECT_EQ(back, c["decoded"].get<std::string>()) << printable(text);
      } else if (v["pre"] != "qwen2") {  // which composes its text
        EXPECT_EQ(back, text);
      }
      ++cases;
    }
  }
  EXPECT_GT(cases, 1500u);
}

// With a real model's file, all strings of tests/data/llm/<name>_ids.json, made by llama.cpp.
Tokenizer check_real(const std::string& path, const std::string& ids) {
  auto file = open_model_file(path);
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message());
  auto data = tokenizer_data((*file)->metadata());
  EXPECT_TRUE(data.ok()) << (data.ok() ? "" : data.error().message());
  Tokenizer tokenizer = made(std::move(*data));
  size_t n = 0;
  for (const Json& c : json_file("llm/" + ids)) {
    const std::string text = c["text"];
    EXPECT_EQ(plain(tokenizer, text), c["ids_plain"].get<Ids>()) << text;
    const Ids special = *tokenizer.encode(text, {.add_special = false, .parse_special = true});
    EXPECT_EQ(special, c["ids_special"].get<Ids>()) << text;
    EXPECT_EQ(*tokenizer.decode(special, true), text);
    ++n;
  }
  EXPECT_GE(n, 40u);
  return tokenizer;
}

TEST(TokenizerGolden, SmolLm2) {
  const char* path = std::getenv("TERN_TEST_SMOLLM2");
  if (path == nullptr) GTEST_SKIP() << "TERN_TEST_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf";
  const Tokenizer tokenizer = check_real(path, "smollm2_ids.json");
  EXPECT_FALSE(tokenizer.adds_bos());
  EXPECT_TRUE(tokenizer.is_end(2));
  EXPECT_TRUE(tokenizer.is_end(0));  // <|endoftext|>, which the file names nowhere
  EXPECT_FALSE(tokenizer.is_end(1));
}

TEST(TokenizerGolden, Gemma3) {
  const char* path = std::getenv("TERN_TEST_GEMMA3");
  if (path == nullptr) GTEST_SKIP() << "TERN_TEST_GEMMA3 does not name gemma-3-270m-q4_k_m.gguf";
  const Tokenizer tokenizer = check_real(path, "gemma3_ids.json");
  EXPECT_EQ(*tokenizer.encode(""), (Ids{2}));
  EXPECT_TRUE(tokenizer.is_end(1));
  EXPECT_TRUE(tokenizer.is_end(106));  // <end_of_turn>, which the file names nowhere
}

// The case files: those that load encode as the manifest says, and every refusal names its key.
TEST(TokenizerFiles, BehaveAsTheManifestSays) {
  size_t tokenized = 0;
  const Json manifest = json_file("gguf/manifest.json");
  for (const Json& c : manifest["cases"]) {
    const std::string name = c["name"];
    auto file = open_model_file(TERN_TEST_DATA "/gguf/" + name);
    if (!file) continue;
    const auto data = tokenizer_data((*file)->metadata());
    const auto tokenizer = data ? Tokenizer::create(*data) : Result<Tokenizer>(data.error());
    if (c.contains("tokenize")) {
      ASSERT_TRUE(tokenizer.ok()) << name << ": " << tokenizer.error().message();
      EXPECT_EQ(*tokenizer->encode(c["tokenize"]["text"].get<std::string>()), c["tokenize"]["ids"].get<Ids>()) << name;
      ++tokenized;
    }
    if (!name.starts_with("model_tok_") && !name.starts_with("model_missing_tok")) continue;
    const std::string message = tokenizer ? "" : tokenizer.error().message();
    EXPECT_TRUE(tokenizer.ok() || message.find("tokenizer.ggml.") != std::string::npos) << name << ": " << message;
    EXPECT_TRUE(c["expect"] != "error" || !tokenizer.ok()) << name;
  }
  EXPECT_GE(tokenized, 2u);
}

TEST(BytePair, MergesByRankThenFromTheLeft) {
  const Tokenizer t = made(small_bpe());
  EXPECT_EQ(plain(t, "abc"), (Ids{4}));
  EXPECT_EQ(plain(t, "abab"), (Ids{3, 3}));
  EXPECT_EQ(plain(t, "bcabc"), (Ids{9, 4}));
  EXPECT_EQ(plain(t, "a abc"), (Ids{0, 5, 4}));  // in " abc" "ab" and then "abc" rank before " a"
  EXPECT_EQ(plain(t, "a ac"), (Ids{0, 6, 2}));
}

TEST(BytePair, SpecialTokensInText) {
  const Tokenizer t = made(small_bpe());
  EXPECT_EQ(*t.encode("a<|end|>b", {.parse_special = true}), (Ids{0, 7, 1}));
  const auto as_text = t.encode("a<|end|>b");
  ASSERT_FALSE(as_text.ok());  // "<" has no token, and there is no unknown token
  EXPECT_NE(as_text.error().message().find("0x3c"), std::string::npos) << as_text.error().message();
  EXPECT_EQ(*t.encode("a<user>b"), (Ids{0, 8, 1}));  // user-defined tokens are always found
  EXPECT_TRUE(t.is_end(7));
  EXPECT_EQ(*t.piece(7), "");
  EXPECT_EQ(*t.piece(7, true), "<|end|>");
  EXPECT_FALSE(t.piece(10).ok());
  EXPECT_FALSE(t.piece(-1).ok());
  EXPECT_EQ(t.find("ab"), 3);
  EXPECT_FALSE(t.find("zz").has_value());
}

TEST(BytePair, UnknownBytesBecomeTheUnknownToken) {
  TokenizerData data = small_bpe();
  data.unk = 7;
  EXPECT_EQ(plain(made(std::move(data)), "a\xFFz"), (Ids{0, 7, 7}));
}

TEST(BytePair, LongWordsStayFast) {
  const Tokenizer t = made(small_bpe());
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "abc";
  EXPECT_EQ(plain(t, text), Ids(300000, 4));
}

TEST(BytePair, OneTokenizerServesManyThreads) {
  const Tokenizer t = made(small_bpe());
  std::vector<std::thread> threads;
  std::vector<Ids> out(4);
  for (auto& ids : out)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) ids = plain(t, "abc ab a bcabc");
    });
  for (auto& thread : threads) thread.join();
  for (const auto& ids : out) EXPECT_EQ(ids, out[0]);
}

TEST(BytePair, AddsBosAndEosWhereTheFileSays) {
  TokenizerData data = small_bpe();
  data.bos = data.eos = 7;
  data.add_bos = data.add_eos = true;
  const Tokenizer t = made(std::move(data));
  EXPECT_EQ(*t.encode("a"), (Ids{7, 0, 7}));
  EXPECT_EQ(plain(t, "a"), (Ids{0}));
  data = small_bpe();
  data.add_bos = true;
  EXPECT_NE(error_of(std::move(data)).find("bos_token_id"), std::string::npos);
}

TEST(Score, MergesByScoreAndFallsBackToBytes) {
  const Tokenizer t = made(small_spm());
  EXPECT_TRUE(t.adds_bos());
  EXPECT_EQ(*t.encode("ab"), (Ids{1, 7, 6}));  // "_a" scores above "ab"
  EXPECT_EQ(*t.encode("bab\n"), (Ids{1, 4, 6, 8, 3}));
  EXPECT_EQ(*t.encode("\xFF"), (Ids{1, 4, 9}));
  EXPECT_EQ(*t.encode("zz\xC3\xA9"
                      "b"),
            (Ids{1, 4, 0, 6}));  // a run of unknown characters is one unknown token
  EXPECT_EQ(*t.encode(""), (Ids{1}));
  EXPECT_EQ(*t.decode(Ids{1, 7, 6}), "ab");
  EXPECT_EQ(*t.decode(Ids{1, 7, 6}, true), "<s>ab");
  EXPECT_EQ(*t.decode(Ids{0}), "\xEF\xBF\xBD");
}

TEST(Score, TheSpacePrefixFollowsEverySpecialToken) {
  const Tokenizer t = made(small_spm());
  EXPECT_EQ(*t.encode("a</s>a", {.parse_special = true}), (Ids{1, 7, 2, 7}));
  TokenizerData data = small_spm();
  data.add_space_prefix = false;
  EXPECT_EQ(*made(std::move(data)).encode("a</s>a", {.parse_special = true}), (Ids{1, 5, 2, 5}));
}

// Gemma's ways: no space in front, runs of lines and spaces as user-defined tokens, which are found before anything is
// merged, the longest first.
TEST(Score, RunsOfUserDefinedTokens) {
  const auto file = open_model_file(TERN_TEST_DATA "/llm/gemma3_tiny.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message();
  const Tokenizer t = made(*tokenizer_data((*file)->metadata()));
  const auto id = [&](std::string_view text) { return *t.find(text); };
  const TokenId the = id("\xE2\x96\x81the"), two = id("\xE2\x96\x81\xE2\x96\x81"),
                four = id("\xE2\x96\x81\xE2\x96\x81\xE2\x96\x81\xE2\x96\x81");
  EXPECT_EQ(plain(t, " the the"), (Ids{the, the}));
  EXPECT_EQ(plain(t, "the"), (Ids{id("t"), id("he")}));
  EXPECT_EQ(plain(t, "\n\n\n\n\n"), (Ids{id("\n\n\n"), id("\n\n")}));
  EXPECT_EQ(plain(t, "on\n the"), (Ids{id("on"), id("\n"), the}));
  EXPECT_EQ(plain(t, "on      the"), (Ids{id("on"), four, two, id("t"), id("he")}));
  EXPECT_EQ(plain(t, "\t\t\tx"), (Ids{id("\t\t"), id("\t"), id("x")}));
  EXPECT_EQ(plain(t, "\xC3\xA9"), (Ids{id("<0xC3>"), id("<0xA9>")}));
  EXPECT_EQ(*t.encode("<start_of_turn>on", {.parse_special = true}), (Ids{2, 4, id("on")}));
  EXPECT_EQ(*t.decode(plain(t, "  the\n\n on")), "  the\n\n on");
}

TEST(Refusals, NameTheKey) {
  const auto with = [](auto change, TokenizerData data) {
    change(data);
    return error_of(std::move(data));
  };
  const auto has = [](const std::string& text, const char* what) { return text.find(what) != std::string::npos; };
  EXPECT_TRUE(has(with([](auto& d) { d.model = "wordsalad"; }, small_bpe()), "wordsalad"));
  const std::string pre = with([](auto& d) { d.pre = "tekken"; }, small_bpe());
  EXPECT_TRUE(has(pre, "tokenizer.ggml.pre \"tekken\"") && has(pre, "qwen2") && has(pre, "smollm")) << pre;
  EXPECT_TRUE(has(with(
                      [](auto& d) {
                        d.tokens.clear();
                        d.types.clear();
                      },
                      small_bpe()),
                  "tokenizer.ggml.tokens"));
  EXPECT_TRUE(has(with([](auto& d) { d.types.pop_back(); }, small_bpe()), "tokenizer.ggml.token_type"));
  EXPECT_TRUE(has(with([](auto& d) { d.scores.pop_back(); }, small_spm()), "tokenizer.ggml.scores"));
  EXPECT_TRUE(has(with([](auto& d) { d.scores[4] = NAN; }, small_spm()), "tokenizer.ggml.scores[4]"));
  EXPECT_TRUE(has(with([](auto& d) { d.tokens[3] = "<0xZZ>"; }, small_spm()), "tokenizer.ggml.tokens[3]"));
  for (const char* merge : {"", " ", "ab", "a ", " b", "a b c", "a  b"})
    EXPECT_TRUE(has(with([&](auto& d) { d.merges[1] = merge; }, small_bpe()), "tokenizer.ggml.merges[1]")) << merge;
  EXPECT_TRUE(has(with([](auto& d) { d.eos = 10; }, small_bpe()), "tokenizer.ggml.eos_token_id"));
  EXPECT_TRUE(has(with([](auto& d) { d.unk = -2; }, small_bpe()), "tokenizer.ggml.unknown_token_id"));
  EXPECT_EQ(with([](auto& d) { d.pad = 10; }, small_bpe()), "");
}

// Any bytes: never a crash, and byte-level vocabularies give them back.
TEST(AnyBytes, EncodeAndComeBack) {
  const Json golden = json_file("llm/tokenizer_golden.json");
  std::set<std::string> seen;
  for (const Json& v : golden) {
    if (v["model"] != "gpt2" || !seen.insert(v["pre"]).second) continue;
    TokenizerData data;
    data.model = "gpt2";
    data.pre = v["pre"];
    data.tokens = v["tokens"].get<std::vector<std::string>>();
    data.merges = v["merges"].get<std::vector<std::string>>();
    const Tokenizer t = made(std::move(data));
    uint32_t state = 1;
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (int i = 0; i < 40; ++i)
        text += static_cast<char>((state = state * 1664525 + 1013904223) >> (round % 2 == 0 ? 24 : 25));
      if (data.pre == "qwen2" && round % 2 == 0) continue;
      std::string back;
      for (const TokenId id : plain(t, text)) back += *t.piece(id);
      EXPECT_TRUE(v["pre"] == "qwen2" || back == text) << printable(text);
    }
  }
}

}  // namespace
}  // namespace tern
