#include "base/utf8.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(Utf8, WellFormedSequences) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
  EXPECT_TRUE(is_utf8("\xF4\x8F\xBF\xBF"));          // U+10FFFF
  EXPECT_TRUE(is_utf8("\xED\x9F\xBF\xEE\x80\x80"));  // around the surrogates
  EXPECT_EQ(utf8_sequence("\xE2\x82\xACx"), 3u);
}

TEST(Utf8, IllFormedSequences) {
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xC3(", "\xE2(\x82"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

// Expectations from the Unicode standard's table of U+FFFD substitution of maximal subparts (chapter 3, table 3-8).
TEST(Utf8, LossyReplacesMaximalSubparts) {
  EXPECT_EQ(utf8_lossy("a\xF1\x80\x80\xE1\x80\xC2"
                       "b\x80"
                       "c\x80\xBF"
                       "d"),
            "a\uFFFD\uFFFD\uFFFD"
            "b\uFFFD"
            "c\uFFFD\uFFFD"
            "d");
  EXPECT_EQ(utf8_lossy("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                       "A"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"
            "A");
  EXPECT_EQ(utf8_lossy("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(utf8_lossy("\xE2\x82"), "\uFFFD");
}

TEST(Utf8, PrintableIsSafeOnATerminal) {
  using namespace std::string_view_literals;
  EXPECT_EQ(printable("a\0b\x1b[31m\n\"\\\x7f"sv), "a\\x00b\\x1b[31m\\n\\\"\\\\\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");  // C1 control sequence introducer
  EXPECT_EQ(printable("\xC3\xA9"), "\xC3\xA9");
  EXPECT_EQ(printable(std::string(200, 'x'), 10), "xxxxxxxxxx...");
}

}  // namespace
}  // namespace tern
