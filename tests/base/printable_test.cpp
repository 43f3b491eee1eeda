// What reaches a terminal: text does, commands to it do not.
#include "base/printable.h"

#include <gtest/gtest.h>

namespace cairn::printable_test {
namespace {

TEST(Printable, KeepsText) {
  for (const char* text :
       {"", "plain", "line\nand\ttab", "Grüße, 東京, 🙂", "\u00a0\u200b\ufeff"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ShowsControls) {
  EXPECT_EQ(printable("\x1b]52;c;eA==\x07"), "\\x1b]52;c;eA==\\x07");
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("a\rb\bc\x7f"), "a\\x0db\\x08c\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\u009b31m"), "\\x9b31m") << "C1: the one-character form of ESC [";
}

TEST(Printable, ShowsWhatTurnsText) {
  EXPECT_EQ(printable("a\u202eb"), "a\\u{202e}b");
  EXPECT_EQ(printable("\u2066x\u2069"), "\\u{2066}x\\u{2069}");
  EXPECT_EQ(printable("\u061c\u200e\u200f\u2028\u2029"),
            "\\u{061c}\\u{200e}\\u{200f}\\u{2028}\\u{2029}");
}

TEST(Printable, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\x80 a"), "\\x80 a");
  EXPECT_EQ(printable("\xe6\x9d"), "\\xe6\\x9d") << "cut off";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b") << "overlong";
  EXPECT_EQ(printable("\xf0\x80\x80\x9b"), "\\xf0\\x80\\x80\\x9b") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "past U+10FFFF";
  EXPECT_EQ(printable("\xc3\x1b"), "\\xc3\\x1b") << "a control inside a broken character";
}

// Nothing but LF and TAB below a space, whatever two bytes come in.
TEST(Printable, NoPairOfBytesPassesAControl) {
  for (int pair = 0; pair < 65536; ++pair) {
    const char bytes[] = {char(pair >> 8), char(pair & 255)};
    for (const char c : printable(std::string_view(bytes, 2))) {
      const unsigned char byte = static_cast<unsigned char>(c);
      ASSERT_TRUE((byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t') << pair;
    }
  }
}

}  // namespace
}  // namespace cairn::printable_test
