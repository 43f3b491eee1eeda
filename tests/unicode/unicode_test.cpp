// UTF-8 against a plain reading of the standard, the byte alphabet, and foldings.
#include "unicode/unicode.h"

#include <gtest/gtest.h>

#include <set>

namespace cairn::unicode::unicode_test {
namespace {

TEST(Utf8, EveryCharacterComesBack) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    append_utf8(code, text);
    const Character character = first_character(text + "x");
    ASSERT_EQ(character.code, code);
    ASSERT_EQ(character.length, text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const std::string_view part = std::string_view(text).substr(0, cut);
      ASSERT_EQ(first_character(part).length, 0u);
      ASSERT_EQ(unfinished_utf8_bytes(part), cut) << int(code);
    }
    ASSERT_EQ(unfinished_utf8_bytes(text), 0u);
  }
}

TEST(Utf8, RefusesWhatIsNotWellFormed) {
  // Continuations alone, overlong forms, surrogates, above U+10FFFF, bytes that never occur.
  for (const std::string_view bad : {"\x80", "\xBF\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF",
                                     "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                                     "\xF5\x80\x80\x80", "\xFF", "\xE2\x28\xA1", "\xC3\x28"}) {
    EXPECT_EQ(first_character(bad).length, 0u);
    EXPECT_EQ(valid_utf8_bytes(std::string("0123456789").append(bad)), 10u);
  }
}

TEST(Utf8, OnlyWhatMayStillBecomeACharacterIsUnfinished) {
  EXPECT_EQ(unfinished_utf8_bytes("ab\xE2\x96"), 2u);
  EXPECT_EQ(unfinished_utf8_bytes("ab\xF0\x9F\x98"), 3u);
  EXPECT_EQ(unfinished_utf8_bytes("ab\xE0\x80"), 0u);  // Overlong already.
  EXPECT_EQ(unfinished_utf8_bytes("ab\xED\xA0"), 0u);  // A surrogate already.
  EXPECT_EQ(unfinished_utf8_bytes("\x80\x80\x80\x80"), 0u);
  EXPECT_EQ(unfinished_utf8_bytes("\xFF"), 0u);
  EXPECT_EQ(unfinished_utf8_bytes(""), 0u);
}

TEST(ByteAlphabet, IsABijection) {
  std::set<char32_t> symbols;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t symbol = symbol_of_byte(uint8_t(byte));
    EXPECT_EQ(byte_of_symbol(symbol), byte);
    symbols.insert(symbol);
  }
  EXPECT_EQ(symbols.size(), 256u);
  EXPECT_EQ(symbol_of_byte('A'), U'A');
  EXPECT_EQ(symbol_of_byte(' '), U'\u0120');
  EXPECT_EQ(symbol_of_byte('\n'), U'\u010A');
  EXPECT_EQ(byte_of_symbol(U' '), -1);
  EXPECT_EQ(byte_of_symbol(U'\u0144'), -1);
  EXPECT_EQ(byte_of_symbol(U'\u4E2D'), -1);
}

TEST(Classes, AreBerts) {
  for (const char32_t space : {U' ', U'\t', U'\u00A0', U'\u3000', U'\u2028'}) {
    EXPECT_TRUE(is_space(space)) << int(space);
  }
  EXPECT_FALSE(is_space(U'\u200B'));
  EXPECT_TRUE(is_control(U'\u200B'));
  EXPECT_TRUE(is_control(U'\x01'));
  EXPECT_FALSE(is_control(U'\n'));
  for (const char32_t mark : {U'!', U'$', U'`', U'~', U'\u00BF', U'\u3002'}) {
    EXPECT_TRUE(is_punctuation(mark)) << int(mark);
  }
  for (const char32_t other : {U'a', U'0', U' ', U'\u20AC', U'\x7F'}) {
    EXPECT_FALSE(is_punctuation(other)) << int(other);
  }
  EXPECT_TRUE(is_ideograph(U'\u6F22'));
  EXPECT_FALSE(is_ideograph(U'\u3042'));
}

TEST(Folding, DropsAccentsAndCase) {
  const auto folded = [](char32_t code, Folding folding) {
    std::u32string out;
    append_folded(code, folding, out);
    return out;
  };
  EXPECT_EQ(folded(U'É', {}), U"e");
  EXPECT_EQ(folded(U'\u0301', {}), U"");
  EXPECT_EQ(folded(U'Я', {}), U"я");
  EXPECT_EQ(folded(U'ß', {}), U"ß");
  EXPECT_EQ(folded(U'\uAC01', {}), U"\u1100\u1161\u11A8");  // All letters of the syllable.
  EXPECT_EQ(folded(U'\u093F', {}), U"\u093F");              // A vowel sign, Mc.
  EXPECT_EQ(folded(U'\u094D', {}), U"");                    // A virama, Mn.
  EXPECT_EQ(folded(U'\u20DD', {}), U"\u20DD");              // An enclosing circle, Me.
  EXPECT_EQ(folded(U'É', {.strip_accents = false, .lowercase = true}), U"é");
  EXPECT_EQ(folded(U'É', {.strip_accents = true, .lowercase = false}), U"E");
}

}  // namespace
}  // namespace cairn::unicode::unicode_test
