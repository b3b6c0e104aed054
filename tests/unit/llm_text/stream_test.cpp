// Text in pieces: whole characters only, stop strings across pieces.
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tern/llm/tokenizer.h"

namespace tern {
namespace {

// A vocabulary of all bytes: id = byte.
Tokenizer bytes() {
  TokenizerData data;
  data.model = "llama";
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (int b = 0; b < 256; ++b) {
    data.tokens.push_back(std::string("<0x") + kHex[b >> 4] + kHex[b & 15] + ">");
    data.types.push_back(TokenType::byte);
  }
  data.scores.assign(256, 0);
  data.add_bos = false;
  data.add_space_prefix = false;
  return std::move(*Tokenizer::create(std::move(data)));
}

std::vector<std::string> pushed(const Tokenizer& t, std::string_view text) {
  Detokenizer stream(t);
  std::vector<std::string> out;
  for (const char c : text) out.push_back(*stream.push(static_cast<uint8_t>(c)));
  out.push_back(stream.flush());
  return out;
}

TEST(Detokenizer, HoldsBackWhatMayBecomeACharacter) {
  const Tokenizer t = bytes();
  using Out = std::vector<std::string>;
  EXPECT_EQ(pushed(t, "a\xE2\x82\xAC!"), (Out{"a", "", "", "\xE2\x82\xAC", "!", ""}));
  EXPECT_EQ(pushed(t, "\xF0\x9F\x98\x80"), (Out{"", "", "", "\xF0\x9F\x98\x80", ""}));
  // Cannot become a character: replaced at once, and what follows is read afresh.
  EXPECT_EQ(pushed(t, "\xFFz"), (Out{"\xEF\xBF\xBD", "z", ""}));
  EXPECT_EQ(pushed(t, "\xE2z"), (Out{"", "\xEF\xBF\xBDz", ""}));
  EXPECT_EQ(pushed(t, "\xE2\x82"), (Out{"", "", "\xEF\xBF\xBD"}));
  EXPECT_EQ(pushed(t, "\xED\xA0"), (Out{"", "\xEF\xBF\xBD\xEF\xBF\xBD", ""}));  // a surrogate's first bytes
  EXPECT_EQ(pushed(t, "\xE2\xF0\x9F"), (Out{"", "\xEF\xBF\xBD", "", "\xEF\xBF\xBD"}));
}

TEST(Detokenizer, PiecesAddUpToTheWhole) {
  const Tokenizer t = bytes();
  uint32_t state = 9;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) {
      state = state * 1664525 + 1013904223;
      static constexpr uint8_t kPool[] = {'a',  0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0xF0, 0x9F,
                                          0x98, 0x80, 0xED, 0xA0, 0xFF, 0xC0, 0xF4, 0x90};
      text += static_cast<char>(kPool[state >> 28]);
    }
    std::string all;
    for (const std::string& piece : pushed(t, text)) {
      EXPECT_TRUE(is_utf8(piece));
      all += piece;
    }
    ASSERT_EQ(all, utf8_lossy(text)) << printable(text);
  }
}

TEST(StopMatcher, FindsStopsAcrossPieces) {
  StopMatcher stops({"END", "\n\n", ""});
  EXPECT_EQ(stops.push("abc E").text, "abc ");
  EXPECT_EQ(stops.push("N").text, "");
  EXPECT_EQ(stops.push("x\n").text, "ENx");
  const auto last = stops.push("\ntail");
  EXPECT_TRUE(last.stopped);
  EXPECT_EQ(last.text, "");
  EXPECT_EQ(stops.which(), "\n\n");
  EXPECT_TRUE(stops.push("more").stopped);
  EXPECT_EQ(stops.flush(), "");
}

TEST(StopMatcher, TheEarliestWins) {
  StopMatcher stops({"cd", "bcde", "zz"});
  const auto out = stops.push("abcde");
  EXPECT_TRUE(out.stopped);
  EXPECT_EQ(out.text, "a");
  EXPECT_EQ(stops.which(), "bcde");
}

TEST(StopMatcher, WhatWasHeldBackIsTextAtTheEnd) {
  StopMatcher stops({"aab"});
  EXPECT_EQ(stops.push("aaa").text, "a");  // "aa" may still become the stop string
  EXPECT_EQ(stops.flush(), "aa");
  StopMatcher none({});
  EXPECT_EQ(none.push("anything").text, "anything");
}

}  // namespace
}  // namespace tern
